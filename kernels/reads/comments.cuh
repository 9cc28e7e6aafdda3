// What stands behind a read's name: SAM tags, as text between tabs (RX:Z:ACGT), or what Illumina's software writes.
#pragma once
#include "common/text.cuh"

struct Characters {
    const u8 *begin, *end;

    HOST_DEVICE i64 length() const { return end - begin; }
    HOST_DEVICE Characters behind(i64 count) const { return Characters{begin + count, end}; }
    template <class Test> HOST_DEVICE bool all(Test test) const {
        for (const u8* at = begin; at < end; ++at)
            if (!test(*at)) return false;
        return true;
    }
    // Up to the next such byte, or all; what is behind that byte stays here, and begins behind the end of the part.
    HOST_DEVICE Characters cut(u8 separator) {
        Characters part = {begin, begin};
        while (part.end < end && *part.end != separator) ++part.end;
        begin = part.end < end ? part.end + 1 : end;
        return part;
    }
};

// What the line has behind its first blank; name: where the read's name begins.
HOST_DEVICE Characters comment_of(const u8* name) {
    while (*name != ' ' && *name != '\t' && *name != '\n') ++name;
    Characters comment = {name, name};
    while (*comment.end != '\n') ++comment.end;
    if (comment.begin < comment.end) ++comment.begin;
    if (comment.begin < comment.end && comment.end[-1] == '\r') --comment.end;
    return comment;
}

struct Integer {
    i64 value;
    bool is_valid;

    HOST_DEVICE bool within(i64 least, i64 most) const { return is_valid && least <= value && value <= most; }
};

HOST_DEVICE bool is_digit(u8 c) { return '0' <= c && c <= '9'; }

HOST_DEVICE Integer parse_integer(Characters text) {
    bool negative = text.length() && *text.begin == '-';
    if (negative || (text.length() && *text.begin == '+')) ++text.begin;
    Integer result = {0, text.length() > 0 && text.all(is_digit)};
    for (; result.is_valid && text.begin < text.end; ++text.begin)
        result.value = minimum(10 * result.value + (*text.begin - '0'), (i64)1 << 40);  // beyond all that a tag holds
    if (negative) result.value = -result.value;
    return result;
}

struct Decimal {
    double value;
    bool is_valid;
};

// A decimal number to the nearest double, where it has 15 digits at most and its power of ten is at most 22: both are
// then exact, and so is, but for its one rounding, the product or the quotient, on every machine. What has more digits
// loses them, and beyond that power the power is rounded too; as a float, the value is still the nearest one or its
// neighbour.
HOST_DEVICE Decimal parse_decimal(Characters text) {
    const i64 most_digits = 900719925474098;  // one more digit, and it is still below 2^53
    bool negative = text.length() && *text.begin == '-', in_fraction = false, any = false;
    if (negative || (text.length() && *text.begin == '+')) ++text.begin;
    i64 digits = 0, exponent = 0;
    for (; text.begin < text.end && (is_digit(*text.begin) || (*text.begin == '.' && !in_fraction)); ++text.begin) {
        if (*text.begin == '.') {
            in_fraction = true;
            continue;
        }
        any = true;
        if (digits <= most_digits) digits = 10 * digits + (*text.begin - '0'), exponent -= in_fraction;
        else exponent += !in_fraction;
    }
    if (text.length() && any && (*text.begin | 32) == 'e') {
        Integer power = parse_integer(text.behind(1));
        any = power.is_valid;
        exponent += clamp<i64>(power.value, -100000, 100000);
        text.begin = text.end;
    }
    double power = 1, value = (double)digits;
    for (i64 i = 0; i < minimum(exponent < 0 ? -exponent : exponent, (i64)100); ++i) power *= 10;
    value = exponent < 0 ? value / power : value * power;
    return Decimal{negative ? -value : value, any && text.length() == 0};
}

// The integers of BAM, by the letters of their types, small ones for those with a sign; the least and the most that each
// holds.
struct IntegerType {
    i32 bytes;
    i64 least, most;

    HOST_DEVICE bool holds(Characters text) const { return parse_integer(text).within(least, most); }
};

HOST_DEVICE IntegerType integer_type(u8 letter) {
    u8 small = letter | 32;
    i32 bytes = small == 'c' ? 1 : small == 's' ? 2 : small == 'i' ? 4 : 0;
    i64 values = (i64)1 << 8 * bytes, least = letter == small ? -values / 2 : 0;
    return bytes ? IntegerType{bytes, least, least + values - 1} : IntegerType{0, 0, 0};
}

HOST_DEVICE bool is_letter(u8 c) { return (u8)((c | 32) - 'a') < 26; }
HOST_DEVICE bool is_hexadecimal(u8 c) { return is_digit(c) || ('A' <= c && c <= 'F'); }
HOST_DEVICE bool is_printable(u8 c) { return ' ' <= c && c <= '~'; }

// The letter of the elements' type, and behind each comma an element.
HOST_DEVICE bool is_array(Characters value) {
    Characters type = value.cut(',');
    if (type.length() != 1 || (*type.begin != 'f' && !integer_type(*type.begin).bytes)) return false;
    for (bool more = value.begin > type.end; more;) {
        Characters element = value.cut(',');
        if (*type.begin == 'f' ? !parse_decimal(element).is_valid : !integer_type(*type.begin).holds(element))
            return false;
        more = value.begin > element.end;
    }
    return true;
}

HOST_DEVICE bool is_tag(Characters tag) {
    const u8* at = tag.begin;
    if (tag.length() < 5 || at[2] != ':' || at[4] != ':' || !is_letter(at[0]) || !(is_letter(at[1]) || is_digit(at[1])))
        return false;
    Characters value = tag.behind(5);
    u8 type = at[3];
    if (type == 'A') return value.length() == 1 && *value.begin != ' ' && is_printable(*value.begin);
    if (type == 'i') return parse_integer(value).within(integer_type('i').least, integer_type('I').most);
    if (type == 'f') return parse_decimal(value).is_valid;
    if (type == 'Z') return value.all(is_printable);
    if (type == 'H') return value.length() % 2 == 0 && value.all(is_hexadecimal);
    return type == 'B' && is_array(value);
}

HOST_DEVICE bool are_tags(Characters comment) {
    for (bool more = comment.length(); more;) {
        Characters tag = comment.cut('\t');
        if (!is_tag(tag)) return false;
        more = comment.begin > tag.end;
    }
    return true;
}

// What Illumina's software writes behind a name: the mate, whether it failed the sequencer's checks, other flags, and the
// sample's index, 1:N:0:ACGT+TTGA, or its number.
struct IlluminaComment {
    Characters index;
    bool is_valid, has_failed;
};

HOST_DEVICE bool is_of_index(u8 c) { return c == 'A' || c == 'C' || c == 'G' || c == 'T' || c == 'N' || c == '+'; }

HOST_DEVICE IlluminaComment illumina_comment(Characters comment) {
    Characters mate = comment.cut(':'), failed = comment.cut(':'), flags = comment.cut(':');
    bool are_fields = mate.length() == 1 && (*mate.begin == '1' || *mate.begin == '2') && failed.length() == 1 &&
                      (*failed.begin == 'Y' || *failed.begin == 'N') && flags.length() && flags.all(is_digit);
    bool is_number = comment.all(is_digit);
    if (!are_fields || !(is_number || comment.all(is_of_index))) return {comment, false, false};
    return {is_number ? comment.behind(comment.length()) : comment, true, *failed.begin == 'Y'};
}
