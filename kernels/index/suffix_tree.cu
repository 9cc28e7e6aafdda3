// Suffix tree construction from the suffix array: the LCP array, its intervals as inner nodes, and the edges.
//
// prefixes[r] is the LCP of the suffixes of ranks r - 1 and r; prefixes[0] is 0. A node of depth d is a range of ranks
// [low, high) with prefixes[low] < d, prefixes[high] < d and d the minimum of the values between. It is marked at the
// first rank with that minimum. Nodes are numbered from 1 in the order of their marks; the root, of depth 0, is node 0.
#include "index/lcp.cuh"
#include "index/suffix_tree.cuh"

const u32 NO_PREDECESSOR = ~0u;
const i64 BLOCK = 64;  // ranks whose marks fill one word
// plcp[p] = the position of the suffix that precedes the suffix at p in the suffix array. An item is a rank.
KERNEL void compute_phi(Items items, const suffix_t* suffixes OF(items), u32* plcp OF(any)) {
    FOR_EACH(rank, items) plcp[suffixes[rank]] = rank ? (u32)suffixes[rank - 1] : NO_PREDECESSOR;
}

// An item is a slice of `slice_size` positions: plcp[p] becomes the LCP of the suffix at p and its predecessor. It is
// at most one less than the value at p - 1 (Kasai et al. 2001), so the bases of a slice are compared once.
KERNEL void compute_plcp(Items items, Reference reference, u32* plcp OF(length), i64 length, i64 slice_size) {
    PackedWords text = reference.packed();
    FOR_EACH(slice, items) {
        i64 shared = 0;
        for (i64 position = slice * slice_size; position < minimum((slice + 1) * slice_size, length); ++position) {
            if (!reference.reach(position, 1)) continue;
            i64 other = plcp[position];
            shared = other == NO_PREDECESSOR ? 0 : maximum(shared - 1, (i64)0);
            for (i64 more = other == NO_PREDECESSOR ? 0 : 32; more == 32; shared += more) {
                more = first_set_base(mismatch_mask(text.at(position + shared), text.at(other + shared)));
                more = minimum(reference.reach(position + shared, more), reference.reach(other + shared, more));
            }
            plcp[position] = (u32)shared;
        }
    }
}

// prefixes[rank] = plcp[suffixes[rank]], the LCP of the suffixes of ranks rank - 1 and rank.
KERNEL void permute_lcp(
        Items items, const suffix_t* suffixes OF(items), const u32* plcp OF(any), u32* prefixes OF(items)) {
    FOR_EACH(rank, items) prefixes[rank] = plcp[suffixes[rank]];
}

// upper[entry] = the minimum of GROUP entries of the level below, `lower`, which has `size` entries.
KERNEL void reduce_minima(Items items, const u32* lower OF(size), u32* upper OF(items), i64 size) {
    FOR_EACH(entry, items) {
        u32 smallest = ~0u;
        for (i64 i = entry * GROUP; i < minimum((entry + 1) * GROUP, size); ++i) smallest = minimum(smallest, lower[i]);
        upper[entry] = smallest;
    }
}

// Mark the ranks of inner nodes in `marks`, a bit each, and count them. An item is a block, a word of 64 ranks.
KERNEL void mark_nodes(
        Items items, LcpPyramid prefixes, u64* marks OF(items), i64* counts OF(items), i64 suffix_count) {
    FOR_EACH(block, items) {
        u64 marked = 0;
        for (i64 rank = block * BLOCK; rank < minimum((block + 1) * BLOCK, suffix_count); ++rank) {
            u32 shared = prefixes.values[rank];
            if (shared && prefixes.values[prefixes.previous_smaller(rank, shared + 1)] < shared)
                marked |= 1ull << (rank & 63);
        }
        marks[block] = marked;
        counts[block] = popcount(marked);
    }
}

struct Nodes {
    const u64* marks OF(blocks);
    const i64* mark_ends OF(blocks);  // inclusive sum of the marks of the blocks
    HOST_DEVICE bool marked(i64 rank) const { return marks[rank >> 6] >> (rank & 63) & 1; }
    HOST_DEVICE u32 number(i64 rank) const {
        u64 following = marks[rank >> 6] >> (rank & 63);
        return (u32)(mark_ends[rank >> 6] - popcount(following) + 1);
    }
};

// Initialize the edges of each inner node as empty edges, with the end of the node's ranks as `left`. An item is a rank
// at which a node may be marked, or, after the last rank, the root.
KERNEL void open_nodes(Items items, LcpPyramid prefixes, Nodes nodes, Edge* edges OF(any), i64 suffix_count) {
    FOR_EACH(rank, items) {
        bool root = rank == suffix_count;
        if (!root && !nodes.marked(rank)) continue;
        i64 high = root ? suffix_count : prefixes.next_smaller(rank + 1, prefixes.values[rank]);
        Edge* own = edges + EDGES_PER_NODE * (root ? 0 : (i64)nodes.number(rank));
        for (i32 i = 0; i < EDGES_PER_NODE; ++i) own[i] = Edge{0, 0, LEAF, (u32)high};
    }
}

// Write the edge from the parent node to `destination` (a node or LEAF), the suffixes of ranks [low, high), which share
// `depth` bases. position: where any of these suffixes starts.
HOST_DEVICE void write_edge(const LcpPyramid& prefixes, const Nodes& nodes, PackedWords text, i64 position, i64 low,
        i64 high, i64 depth, u32 destination, i64 suffix_count, Edge* edges) {
    const u32* shared = prefixes.values;
    i64 at = high < suffix_count && shared[high] > shared[low] ? high : low, above = shared[at];
    if (above == depth) return;  // the suffix ends at the node
    i64 node = 0;
    if (above)
        node = nodes.number(prefixes.next_smaller(prefixes.previous_smaller(at, (u32)above) + 1, (u32)above + 1));
    edges[EDGES_PER_NODE * node + text.base(position + above)] =
            Edge{(u32)(position + above), (u32)(depth - above), destination, (u32)low};
}

// Write the edge to the leaf of each suffix, and the edge to the node marked at its rank. An item is a rank.
KERNEL void write_edges(Items items, Reference reference, const suffix_t* suffixes OF(suffix_count),
        LcpPyramid prefixes, Nodes nodes, Edge* edges OF(any), i64 suffix_count) {
    PackedWords text = reference.packed();
    FOR_EACH(rank, items) {
        i64 position = (i64)suffixes[rank];
        i64 whole = reference.barrier_starts[reference.next_barrier(position)] - position;
        write_edge(prefixes, nodes, text, position, rank, rank + 1, whole, LEAF, suffix_count, edges);
        if (!nodes.marked(rank)) continue;
        u32 depth = prefixes.values[rank];
        i64 low = prefixes.previous_smaller(rank, depth), high = prefixes.next_smaller(rank + 1, depth);
        write_edge(
                prefixes, nodes, text, (i64)suffixes[low], low, high, depth, nodes.number(rank), suffix_count, edges);
    }
}

// Set `left` of each empty edge to `left` of the next edge. An item is a node.
KERNEL void close_nodes(Items items, Edge* edges OF(EDGES_PER_NODE* items)) {
    FOR_EACH(node, items) {
        Edge* own = edges + EDGES_PER_NODE * node;
        for (i32 i = EDGES_PER_NODE - 2; i >= 0; --i)
            if (own[i].length == 0) own[i].left = own[i + 1].left;
    }
}

// Store the deepest node reached by walking down along each code (item) of entry_bases bases.
KERNEL void fill_entries(Items items, const Edge* edges OF(any), Entry* entries OF(items), i32 entry_bases) {
    FOR_EACH(code, items) {
        Entry entry = {-1, 0, 0};
        while ((i32)entry.depth < entry_bases) {
            i32 base = (i32)(code >> (2 * (entry_bases - 1 - entry.depth)) & 3);
            i64 next = EDGES_PER_NODE * entry.node + base;
            const Edge edge = edges[next];
            if (edge.length > entry_bases - entry.depth || edge.destination == LEAF) break;
            entry = Entry{base < 3 ? next + 1 : entry.bound, edge.destination, entry.depth + edge.length};
        }
        entries[code] = entry;
    }
}
