// Building the suffix tree from the suffix array: common prefixes of neighbours, then the intervals of ranks that they
// enclose, which are the tree's nodes, then the edges.
//
// prefixes[r] is what the suffixes of ranks r - 1 and r share; prefixes[0] is 0. A node of depth d is a range of ranks
// [low, high) with prefixes[low] < d, prefixes[high] < d and the least of those between equal to d. It is marked at the
// first of these, and numbered from 1 on by the order of the marks; the root, of depth 0, is node 0.
#include "index/longest_prefixes.cuh"
#include "index/suffix_tree.cuh"

const u32 NO_NEIGHBOUR = ~0u;

// Ranks whose marks are one word.
const i64 BLOCK = 64;

// An item is a rank: before[p] is the place of the suffix in front of that at p.
KERNEL void find_neighbours(Items items, const suffix_t* suffixes OF(items), u32* before OF(any)) {
    FOR_EACH(rank, items) before[suffixes[rank]] = rank ? (u32)suffixes[rank - 1] : NO_NEIGHBOUR;
}

// An item is a slice of `slice_size` places: before[p] becomes the prefix that the suffix at p shares with that
// neighbour. It is at most one base shorter than the one at p - 1 (Kasai et al. 2001), so the bases of a slice are
// compared once.
KERNEL void share_prefixes(Items items, Reference reference, u32* before OF(length), i64 length, i64 slice_size) {
    PackedWords text = reference.packed();
    FOR_EACH(slice, items) {
        i64 shared = 0;
        for (i64 place = slice * slice_size; place < minimum((slice + 1) * slice_size, length); ++place) {
            if (!reference.reach(place, 1)) continue;
            i64 other = before[place];
            shared = other == NO_NEIGHBOUR ? 0 : maximum(shared - 1, (i64)0);
            for (i64 more = other == NO_NEIGHBOUR ? 0 : 32; more == 32; shared += more) {
                more = first_set_base(mismatch_mask(text.at(place + shared), text.at(other + shared)));
                more = minimum(reference.reach(place + shared, more), reference.reach(other + shared, more));
            }
            before[place] = (u32)shared;
        }
    }
}

// An item is a rank.
KERNEL void order_prefixes(Items items, const suffix_t* suffixes OF(items), const u32* by_place OF(any),
                           u32* prefixes OF(items)) {
    FOR_EACH(rank, items) prefixes[rank] = by_place[suffixes[rank]];
}

// An item is an entry of the level `upper`; the one below has `size` entries.
KERNEL void take_minima(Items items, const u32* lower OF(size), u32* upper OF(items), i64 size) {
    FOR_EACH(entry, items) {
        u32 least = ~0u;
        for (i64 i = entry * GROUP; i < minimum((entry + 1) * GROUP, size); ++i) least = minimum(least, lower[i]);
        upper[entry] = least;
    }
}

// An item is a block of ranks: the first bit of marks is its first rank.
KERNEL void mark_nodes(Items items, Pyramid prefixes, u64* marks OF(items), i64* counts OF(items), i64 suffix_count) {
    FOR_EACH(block, items) {
        u64 marked = 0;
        for (i64 rank = block * BLOCK; rank < minimum((block + 1) * BLOCK, suffix_count); ++rank) {
            u32 shared = prefixes.values[rank];
            if (shared && prefixes.values[prefixes.before(rank, shared + 1)] < shared) marked |= 1ull << (rank & 63);
        }
        marks[block] = marked;
        counts[block] = popcount(marked);
    }
}

struct Nodes {
    const u64* marks OF(blocks);
    const i64* mark_ends OF(blocks);  // marks up to and with each block

    HOST_DEVICE bool marked(i64 rank) const { return marks[rank >> 6] >> (rank & 63) & 1; }
    HOST_DEVICE u32 number(i64 rank) const {
        u64 behind = marks[rank >> 6] >> (rank & 63);
        return (u32)(mark_ends[rank >> 6] - popcount(behind) + 1);
    }
};

// An item is a rank, and behind the last one the root: the edges of the node marked there are fake as yet.
KERNEL void open_nodes(Items items, Pyramid prefixes, Nodes nodes, Edge* edges OF(any), i64 suffix_count) {
    FOR_EACH(rank, items) {
        bool root = rank == suffix_count;
        if (!root && !nodes.marked(rank)) continue;
        i64 high = root ? suffix_count : prefixes.from(rank + 1, prefixes.values[rank]);
        Edge* own = edges + EDGES_PER_NODE * (root ? 0 : (i64)nodes.number(rank));
        for (i32 i = 0; i < EDGES_PER_NODE; ++i) own[i] = Edge{0, 0, LEAF, (u32)high};
    }
}

// Writes the edge that leads to the suffixes [low, high), which share `depth` bases, from the node above them.
HOST_DEVICE void write_edge(const Pyramid& prefixes, const Nodes& nodes, PackedWords text, i64 place, i64 low, i64 high,
                            i64 depth, u32 destination, i64 suffix_count, Edge* edges) {
    const u32* shared = prefixes.values;
    i64 at = high < suffix_count && shared[high] > shared[low] ? high : low, above = shared[at];
    if (above == depth) return;  // the suffix ends at the node
    i64 node = 0;
    if (above) node = nodes.number(prefixes.from(prefixes.before(at, (u32)above) + 1, (u32)above + 1));
    edges[EDGES_PER_NODE * node + text.base(place + above)] =
        Edge{(u32)(place + above), (u32)(depth - above), destination, (u32)low};
}

// An item is a rank: the edge of its leaf, and that of the node marked there.
KERNEL void write_edges(Items items, Reference reference, const suffix_t* suffixes OF(suffix_count), Pyramid prefixes,
                        Nodes nodes, Edge* edges OF(any), i64 suffix_count) {
    PackedWords text = reference.packed();
    FOR_EACH(rank, items) {
        i64 place = (i64)suffixes[rank];
        i64 whole = reference.barrier_starts[reference.next_barrier(place)] - place;
        write_edge(prefixes, nodes, text, place, rank, rank + 1, whole, LEAF, suffix_count, edges);
        if (!nodes.marked(rank)) continue;
        u32 depth = prefixes.values[rank];
        i64 low = prefixes.before(rank, depth), high = prefixes.from(rank + 1, depth);
        write_edge(prefixes, nodes, text, (i64)suffixes[low], low, high, depth, nodes.number(rank), suffix_count,
                   edges);
    }
}

// An item is a node: fake edges get the bound of the edge behind them.
KERNEL void close_nodes(Items items, Edge* edges OF(EDGES_PER_NODE* items)) {
    FOR_EACH(node, items) {
        Edge* own = edges + EDGES_PER_NODE * node;
        for (i32 i = EDGES_PER_NODE - 2; i >= 0; --i)
            if (own[i].length == 0) own[i].left = own[i + 1].left;
    }
}

// An item is the code of entry_bases bases: where walks that begin with them go on.
KERNEL void enter_tree(Items items, const Edge* edges OF(any), Entry* entries OF(items), i32 entry_bases) {
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
