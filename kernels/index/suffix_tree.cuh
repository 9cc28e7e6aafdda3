// The suffix tree as a flat array of edges (Encarnação et al.), four per node (A, C, G, T), the root's edges first.
//
// An edge is its label in the reference (start, length), its destination node, and `left`, the first rank of the
// suffixes below it; their last rank is before the `left` of the next edge, or, for T, the bound of the node. A suffix
// that ends at a node, because a barrier follows, precedes the node's edges. An edge of length 0 is empty and has the
// bound of the next edge. A leaf's edge has destination 0, the root, and ends at a barrier.
#pragma once
#include "reads/patterns.cuh"
#include "index/reference.cuh"
#include "index/suffix_array.cuh"

struct alignas(16) Edge {
    u32 start, length, destination, left;
};

const u32 LEAF = 0;
const i64 EDGES_PER_NODE = 4;
// The start of a walk whose first bases are known, like an entry of the prefix table: the deepest node on the path that
// lies no deeper than these bases. The table for 0 bases has only the root.
struct alignas(16) Entry {
    i64 bound;  // see Walk
    u32 node, depth;
};

struct SuffixTree {
    const Edge* edges OF(any);
    const Entry* entries OF(1 << 2 * entry_bases);  // by the code of the first bases
    i64 suffix_count;
    i32 entry_bases;
};

// A walk from the root along a pattern. Below a node the edges differ in their first base, so the walk compares only
// these; at the end, the whole pattern is compared once, at the position of any suffix of the subtree.
struct Walk {
    Pattern pattern;
    i64 next;      // the edge to follow
    i64 bound;     // the edge whose `left` ends the subtree's ranks; -1 if the last suffix is in the subtree
    i64 position;  // of a suffix in the subtree
    i64 low;
    i64 depth;  // bases walked so far
    u64 bases;  // the pattern's 32 around the depth
    bool going;
    HOST_DEVICE void start(Pattern walked, const SuffixTree& tree) {
        pattern = walked;
        low = position = 0;
        going = walked.length > 0;
        if (!going) return;
        bases = walked.at(0);
        Entry entry = {-1, 0, 0};
        if (walked.length > tree.entry_bases) entry = tree.entries[leading_code(bases, tree.entry_bases)];
        bound = entry.bound;
        depth = entry.depth;
        turn(entry.node);
    }
    HOST_DEVICE void turn(u32 node) {
        i32 base = (i32)(bases >> (62 - 2 * (depth & 31)) & 3);
        next = EDGES_PER_NODE * node + base;
        if (base < 3) bound = next + 1;
    }
    HOST_DEVICE void step(const Edge* edges) {
        const Edge edge = edges[next];
        position = maximum((i64)edge.start - depth, (i64)0);  // negative only if the edges are damaged
        low = edge.left;
        i64 before = depth;
        depth += edge.length;
        going = depth < pattern.length && edge.destination != LEAF;
        if (!going) {
            if (edge.length == 0 || depth < pattern.length) low = -1;
            return;
        }
        if ((depth ^ before) >> 5) bases = pattern.at(depth & ~31ll);
        turn(edge.destination);
        PREFETCH(&edges[next]);
    }
    // Return the ranks of the suffixes that start with the pattern; the walk has ended.
    HOST_DEVICE Ranks found(const SuffixTree& tree, const Reference& reference) const {
        Ranks none = {0, 0};
        if (pattern.length == 0 || low < 0) return none;
        PackedReader text(reference.words, position);
        for (i32 i = 0; i < pattern.length; i += 32)
            if ((pattern.at(i) ^ text.next()) & leading_mask(pattern.length - i)) return none;
        return Ranks{low, maximum(low, bound < 0 ? tree.suffix_count : (i64)tree.edges[bound].left)};
    }
};
