// Optical duplicates: duplicates whose clusters are close to each other on the flow cell.
#include "duplicates/fragment.cuh"

const u32 NO_KEEPER = ~0u;
const u32 SIGN = 0x80000000u;  // flipped, so that signed numbers sort as unsigned numbers
// List the fragments of each duplicate set (item) that have flow cell coordinates, without strand combinations of more
// than max_pairs pairs. order, heads, sizes: where each set is; ends: inclusive sum of `located` of choose_best. sets,
// tiles, coordinates: sort columns that make neighbours adjacent: the set; strands, read group and tile; x and y.
KERNEL void list_located(Items items, Fragments fragments, const u32* order OF(size), const i32* heads OF(items),
        const i64* sizes OF(items), const i64* ends OF(items), u32* members OF(count), u64* sets OF(count),
        u64* tiles OF(count), u64* coordinates OF(count), i64 size, i64 count, i64 max_pairs) {
    FOR_EACH(set, items) {
        i64 next = set ? ends[set - 1] : 0, by_strands[4] = {0, 0, 0, 0};
        if (next == ends[set]) continue;
        for (i64 i = 0; i < sizes[set]; ++i) ++by_strands[fragments.rows[order[heads[set] + i]].strands & 3];
        for (i64 i = 0; i < sizes[set]; ++i) {
            u32 member = order[heads[set] + i];
            const Fragment& row = fragments.rows[member];
            if (!row.has_coordinates() || by_strands[row.strands & 3] > max_pairs) continue;
            members[next] = member;
            sets[next] = (u64)set;
            tiles[next] = (u64)row.strands << 32 | (u64)row.group << 16 | (u16)row.tile;
            coordinates[next++] = (u64)((u32)row.x ^ SIGN) << 32 | ((u32)row.y ^ SIGN);
        }
    }
}

// Return the first member of the cluster of a member; shorten the path there. parents: union-find forest.
HOST_DEVICE i32 find_root(i32* parents, i32 member) {
    for (i32 parent = load_relaxed(parents + member); parent != member; parent = load_relaxed(parents + member)) {
        i32 above = load_relaxed(parents + parent);
        if (above != parent) compare_and_swap(parents + member, parent, above);
        member = parent;
    }
    return member;
}

// Merge the clusters of two members. parents: union-find forest; a root is the first member of its cluster.
HOST_DEVICE void unite_clusters(i32* parents, i32 one, i32 other) {
    for (;;) {
        one = find_root(parents, one);
        other = find_root(parents, other);
        if (one == other) return;
        i32 earlier = minimum(one, other), later = maximum(one, other);
        if (compare_and_swap(parents + later, later, earlier) == later) return;
    }
}

// Unite each member listed by list_located (item) with members of its set and tile at most `distance` away in x and y.
// order: sorted by set, tile and coordinates; parents: initially each member itself.
KERNEL void join_neighbours(Items items, const Fragment* rows OF(any), const u32* members OF(items),
        const u32* order OF(items), const u64* sets OF(items), const u64* tiles OF(items), i32* parents OF(items),
        i64 count, i64 distance) {
    FOR_EACH(at, items) {
        u32 own = order[at];
        const Fragment& row = rows[members[own]];
        for (i64 next = at + 1; next < count; ++next) {
            u32 other = order[next];
            if (sets[other] != sets[own] || tiles[other] != tiles[own]) break;
            const Fragment& neighbour = rows[members[other]];
            if ((i64)neighbour.x - row.x > distance) break;
            i64 apart = (i64)neighbour.y - row.y;
            if (apart <= distance && -apart <= distance) unite_clusters(parents, (i32)at, (i32)next);
        }
    }
}

// keepers[c] = the rank of the member of cluster c, its first member, that is no duplicate, if any. An item is a rank.
KERNEL void find_keepers(Items items, const u32* members OF(items), const u32* order OF(items), const u8* marks OF(any),
        i32* parents OF(items), u32* keepers OF(items)) {
    FOR_EACH(at, items) {
        if (!(marks[members[order[at]]] & DUPLICATE)) keepers[find_root(parents, (i32)at)] = (u32)at;
    }
}

// Mark as optical duplicates all members of a cluster except its keeper or, without a keeper, the first member. An item
// is a rank in `order`. found: number of optical duplicates of each set; counters: COUNTERS per library.
KERNEL void mark_optical(Items items, const Fragment* rows OF(any), const u32* members OF(items),
        const u32* order OF(items), const u64* sets OF(items), i32* parents OF(items), const u32* keepers OF(items),
        u8* marks OF(any), u64* found OF(any), u64* counters OF(any)) {
    FOR_EACH(at, items) {
        i32 first = find_root(parents, (i32)at);
        i64 kept = keepers[first] == NO_KEEPER ? (i64)first : (i64)keepers[first];
        if (at == kept) continue;
        u32 member = members[order[at]];
        marks[member] |= OPTICAL;
        atomic_add(found + sets[order[at]], 1);
        atomic_add(counters + rows[member].library() * COUNTERS + OPTICAL_DUPLICATES, 1);
    }
}
