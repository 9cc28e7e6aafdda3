// Suffix sorting by prefix doubling (Manber, Myers 1993; Larsson, Sadakane 2007): suffixes are sorted by their first
// bases, then tied ones by the rank of the suffix after their common prefix, whose length doubles each time.
//
// order[slot] is the position of a suffix. Tied suffixes form a group: consecutive slots, in order of position. heads
// has a set bit for each slot at which a group starts. ranks[position] is 1 + the first slot of the suffix's group, and
// 0 at a barrier. Suffixes that a barrier makes equal do not tie: the stable sort leaves them in order of position.
//
// If several devices sort, each numbers its own slots from 0, but has the ranks of all positions among all slots.
#include "index/reference.cuh"

// Bases in a key, with A after a barrier; the low REACH_BITS bits are the number of bases before the barrier.
const i32 KEY_BASES = 25;
const i32 REACH_BITS = 5;
const i32 BATCH_BASES = 4,
          BATCH_CODES = 256;  // suffixes are sorted in batches of consecutive codes of their first bases
const i32 RUN = 1024;         // positions, slots or pairs of an item: a multiple of 32
// 32 positions, starting at a word, and the bases that follow each of them.
struct WordRow {
    i64 first;
    u64 here, next;
    bool is_clear;
    HOST_DEVICE WordRow(const Reference& reference, i64 first)
        : first(first),
          here(reference.words[first >> 5]),
          next(reference.words[(first >> 5) + 1]),
          is_clear(reference.has_no_barrier(first, first + 32 + BATCH_BASES)) {}
    // Return the code of the first bases of the suffix at a position, with A after a barrier; -1 at a barrier.
    HOST_DEVICE i32 batch_code(const Reference& reference, i32 i) const {
        u64 bases = here << 2 * i | next >> 1 >> (63 - 2 * i);  // in two steps, since no word is shifted by 64
        if (!is_clear) {
            i64 reach = reference.reach(first + i, BATCH_BASES);
            if (!reach) return -1;
            bases &= leading_mask(reach);
        }
        return (i32)leading_code(bases, BATCH_BASES);
    }
};

// Add the number of suffixes with each code of BATCH_BASES bases to `counts`. An item is section_size positions.
KERNEL void count_codes(
        BlockItems items, Reference reference, u64* counts OF(BATCH_CODES), i64 length, i64 section_size) {
    FOR_EACH(section, items) {
        BLOCK_ARRAY(u32, found, BATCH_CODES);
        for (i32 code = block_thread(); code < BATCH_CODES; code += BLOCK_WIDTH) found[code] = 0;
        block_sync();
        i64 last = minimum((section + 1) * section_size, length);
        i32 groups = BLOCK_WIDTH / WARP_WIDTH;
        for (i64 first = section * section_size + block_thread() / WARP_WIDTH * 32; first < last;
                first += 32 * groups) {
            WordRow row(reference, first);
            for (i32 i = warp_lane(); i < 32; i += WARP_WIDTH) {
                i32 code = row.batch_code(reference, i);
                if (code >= 0) block_atomic_add(&found[code], 1);
            }
        }
        block_sync();
        for (i32 code = block_thread(); code < BATCH_CODES; code += BLOCK_WIDTH)
            if (found[code]) atomic_add(&counts[code], found[code]);
        block_sync();
    }
}

// The codes of a batch, and the first slot of its suffixes.
struct SortBatch {
    i32 first_code, end_code;
    i64 first_slot;
};

HOST_DEVICE bool holds(const SortBatch& batch, i32 code) { return code >= batch.first_code && code < batch.end_code; }
// counts[run] = the number of suffixes of the batch among RUN positions (an item).
KERNEL void count_batch(WarpItems items, Reference reference, SortBatch batch, i64* counts OF(items), i64 length) {
    FOR_EACH(run, items) {
        i64 count = 0;
        for (i64 first = run * RUN; first < minimum((run + 1) * RUN, length); first += 32) {
            WordRow row(reference, first);
            for (i32 i = warp_lane(); i < 32; i += WARP_WIDTH)
                count += popcount(warp_ballot(holds(batch, row.batch_code(reference, i))));
        }
        if (warp_lane() == 0) counts[run] = count;
    }
}

// Write the batch's suffixes in order of position: keys (code of KEY_BASES bases << REACH_BITS | bases before a
// barrier), positions and slots. An item is RUN positions; ends: the inclusive sum of count_batch.
KERNEL void key_batch(WarpItems items, Reference reference, SortBatch batch, const i64* ends OF(items),
        u64* keys OF(size), suffix_t* positions OF(size), suffix_t* slots OF(size), i64 length) {
    FOR_EACH(run, items) {
        i64 to = run ? ends[run - 1] : 0;
        for (i64 first = run * RUN; first < minimum((run + 1) * RUN, length); first += 32) {
            WordRow row(reference, first);
            for (i32 lane = warp_lane(); lane < 32; lane += WARP_WIDTH) {
                bool mine = holds(batch, row.batch_code(reference, lane));
                u32 chosen = warp_ballot(mine);
                if (mine) {
                    i64 position = first + lane, i = to + popcount(chosen & lower_lanes_mask());
                    i64 reach = reference.reach(position, KEY_BASES);
                    u64 bases = reference.packed().at(position) & leading_mask(reach);
                    keys[i] = (u64)leading_code(bases, KEY_BASES) << REACH_BITS | (u64)reach;
                    positions[i] = (suffix_t)position;
                    slots[i] = (suffix_t)(batch.first_slot + i);
                }
                to += popcount(chosen);
            }
        }
    }
}

// Pairs sorted by key. A pair whose key has `key & field` less than min_field ties with no other pair.
struct Sorted {
    const u64* keys OF(pairs);
    const suffix_t* positions OF(pairs);
    i64 pairs;
    u64 field, min_field;
};

// Return true if sorted pair i starts a group: its key differs from the key before, or it ties with no other pair.
template <class Pairs> HOST_DEVICE bool is_head(const Pairs& sorted, i64 i) {
    return i == 0 || sorted.keys[i - 1] != sorted.keys[i] || (sorted.keys[i] & sorted.field) < sorted.min_field;
}
// Return the index of the first pair of the group of pair i.
template <class Pairs> HOST_DEVICE i64 head_of(const Pairs& sorted, i64 i) {
    if (is_head(sorted, i)) return i;
    u64 key = sorted.keys[i];
    i64 inside = i, step = 1;
    while (step <= i && sorted.keys[i - step] == key) inside = i - step, step *= 2;
    i64 outside = maximum(i - step, (i64)-1);
    while (inside - outside > 1) {
        i64 middle = (inside + outside) >> 1;
        if (sorted.keys[middle] == key) inside = middle;
        else outside = middle;
    }
    return inside;
}

// The groups so far. first_slot: the number of slots of the devices before this device.
struct Groups {
    suffix_t* order OF(slot_count);
    suffix_t* ranks OF(length);
    u32* heads OF((slot_count + 31) / 32);
    i64 first_slot, slot_count, length;
};

// Store the suffixes of RUN sorted pairs (an item) in groups.order at `slots`, which ascend, and update ranks and
// heads. new_ranks: the rank of each pair's suffix, for other devices, if store_ranks.
KERNEL void assign_groups(WarpItems items, Sorted sorted, const suffix_t* slots OF(pairs), Groups groups,
        suffix_t* new_ranks OF(pairs), bool store_ranks) {
    FOR_EACH(run, items) {
        i64 first = run * RUN, last = minimum(first + RUN, sorted.pairs), head = head_of(sorted, first);
        for (i64 row = first; row < last; row += WARP_WIDTH) {
            i64 i = row + warp_lane();
            bool is_start = i < last && is_head(sorted, i);
            u32 marks = warp_ballot(is_start), upto = marks & (lower_lanes_mask() << 1 | 1);
            if (i < last) {
                i64 position = (i64)sorted.positions[i], own = upto ? row + last_lane(upto) : head;
                suffix_t rank = (suffix_t)(groups.first_slot + (i64)slots[own] + 1);
                groups.order[slots[i]] = (suffix_t)position;
                groups.ranks[position] = rank;
                if (store_ranks) new_ranks[i] = rank;
                if (is_start) atomic_or(&groups.heads[slots[i] >> 5], 1u << (slots[i] & 31));
            }
            if (marks) head = row + last_lane(marks);
        }
    }
}

const i32 SMALL_GROUP = 32;  // groups of at most this many slots are sorted by sort_small
// The suffixes that are sorted together: tied suffixes in whole groups of [first, end), either small or larger groups.
struct Ties {
    i64 first, end;
    i32 small;
};

// Return a word of `heads`, a bit per slot at which a group starts; bits outside the slots are set.
template <class Slots> HOST_DEVICE u32 heads_at(const Slots& groups, i64 word) {
    i64 held = groups.slot_count - 32 * word;
    if (word < 0 || held <= 0) return ~0u;
    return groups.heads[word] | (held < 32 ? ~0u << held : 0);
}

// Return the bits [from, to) of a word; from < 32, to > 0.
HOST_DEVICE u32 bits_between(i64 from, i64 to) {
    return ~0u << maximum(from, (i64)0) & ~0u >> (32 - minimum(to, (i64)32));
}
// Return the bits of `tied`, the tied slots of a word, that belong to groups of at most SMALL_GROUP slots.
template <class Slots> HOST_DEVICE u32 in_small_groups(const Slots& groups, i64 word, u32 tied) {
    u32 heads = heads_at(groups, word), before = heads_at(groups, word - 1), after = heads_at(groups, word + 1);
    i32 next = after ? 32 + first_lane(after) : 2 * 32 + SMALL_GROUP;
    u32 found = 0;
    // From the last group of the word to the first, which may start in the word before.
    for (u32 left = heads & tied;; left &= ~(1u << last_lane(left))) {
        i32 head = left ? last_lane(left) : before ? last_lane(before) - 32 : -32 - SMALL_GROUP;
        u32 above = head >= 0 ? heads & ~(~0u >> (31 - head)) : heads;
        i32 end = above ? first_lane(above) : next;
        if (end > 0 && end - head <= SMALL_GROUP) found |= bits_between(head, end);
        if (!left) return found & tied;
    }
}

// Return the bits of the slots of a word that are sorted together: tied slots in the range and of the size of `ties`.
template <class Slots> HOST_DEVICE u32 tied_at(const Slots& groups, const Ties& ties, i64 word) {
    i64 from = ties.first - 32 * word, to = ties.end - 32 * word;
    if (from >= 32 || to <= 0) return 0;
    u32 heads = heads_at(groups, word);
    u32 tied = ~(heads & (heads >> 1 | heads_at(groups, word + 1) << 31)) & bits_between(from, to);
    if (!tied) return 0;
    u32 small = in_small_groups(groups, word, tied);
    return ties.small ? small : tied & ~small;
}

// Count the tied slots of each run of RUN slots (an item), and their groups, as `tied` and `tied_groups`.
KERNEL void count_tied(Items items, Groups groups, Ties ties, i64* tied OF(items), i64* tied_groups OF(items)) {
    FOR_EACH(run, items) {
        i64 slots = 0, heads = 0;
        for (i64 word = run * (RUN / 32); word < (run + 1) * (RUN / 32); ++word) {
            u32 mine = tied_at(groups, ties, word);
            slots += popcount(mine);
            heads += popcount(mine & heads_at(groups, word));
        }
        tied[run] = slots, tied_groups[run] = heads;
    }
}

// Write the tied suffixes in order: keys (index of their group << rank_bits | rank of the suffix `depth` bases later),
// positions and slots. An item is RUN slots; tied_ends, group_ends: inclusive sums of count_tied.
KERNEL void key_tied(WarpItems items, Groups groups, Ties ties, const i64* tied_ends OF(items),
        const i64* group_ends OF(items), u64* keys OF(size), suffix_t* positions OF(size), suffix_t* slots OF(size),
        i64 depth, i32 rank_bits) {
    FOR_EACH(run, items) {
        i64 to = run ? tied_ends[run - 1] : 0, group = (run ? group_ends[run - 1] : 0) - 1;
        for (i64 word = run * (RUN / 32); word < (run + 1) * (RUN / 32); ++word) {
            u32 mine = tied_at(groups, ties, word), heads = heads_at(groups, word) & mine;
            if (!mine) continue;
            for (i32 bit = warp_lane(); bit < 32; bit += WARP_WIDTH)
                if (mine >> bit & 1) PREFETCH(groups.ranks + (i64)groups.order[32 * word + bit] + depth);
            for (i32 bit = warp_lane(); bit < 32; bit += WARP_WIDTH) {
                if (!(mine >> bit & 1)) continue;
                u32 below = (1u << bit) - 1;
                i64 i = to + popcount(mine & below), position = (i64)groups.order[32 * word + bit];
                u64 number = (u64)(group + popcount(heads & (below << 1 | 1)));
                keys[i] = number << rank_bits | (u64)groups.ranks[position + depth];
                positions[i] = (suffix_t)position;
                slots[i] = (suffix_t)(32 * word + bit);
            }
            to += popcount(mine);
            group += popcount(heads);
        }
    }
}

// Write each pair (item) of the small groups to its sorted place in its group. keys: as key_tied writes them.
KERNEL void sort_small(Items items, const u64* keys OF(items), const suffix_t* positions OF(items),
        u64* sorted_keys OF(items), suffix_t* sorted_positions OF(items), i64 size, i32 rank_bits) {
    FOR_EACH(i, items) {
        u64 key = keys[i];
        i64 to = i;
        for (i64 j = i - 1; j >= 0 && keys[j] >> rank_bits == key >> rank_bits; --j) to -= keys[j] > key;
        for (i64 j = i + 1; j < size && keys[j] >> rank_bits == key >> rank_bits; ++j) to += keys[j] < key;
        sorted_keys[to] = key;
        sorted_positions[to] = positions[i];
    }
}

// Take over the ranks that only another device has: `other` has a rank per position, 0 if it is unknown there.
KERNEL void merge_ranks(Items items, const suffix_t* other OF(items), suffix_t* ranks OF(items)) {
    FOR_EACH(position, items) ranks[position] = maximum(ranks[position], other[position]);
}

// Store the new ranks of suffixes that another device has sorted, by their positions, in groups.ranks.
KERNEL void apply_ranks(
        Items items, const suffix_t* positions OF(items), const suffix_t* ranks OF(items), Groups groups) {
    FOR_EACH(i, items) groups.ranks[positions[i]] = ranks[i];
}
