// Parse the header line of a read: its name, and the comment after the name, SAM tags or Illumina's fields.
#pragma once
#include "common/text.cuh"

const i32 MAX_NAME_LENGTH = 254;
// Return the length of a name without a trailing /1 or /2, unless the name consists of nothing else.
HOST_DEVICE i64 without_mate_number(const u8* name, i64 length) {
    bool numbered = length > 2 && name[length - 2] == '/' && (name[length - 1] == '1' || name[length - 1] == '2');
    return numbered ? length - 2 : length;
}

struct TextSpan {
    const u8 *start, *end;
    HOST_DEVICE i64 length() const { return end - start; }
    HOST_DEVICE TextSpan after(i64 count) const { return TextSpan{start + count, end}; }
    template <class Test> HOST_DEVICE bool all(Test test) const {
        for (const u8* at = start; at < end; ++at)
            if (!test(*at)) return false;
        return true;
    }
    // Remove and return the text up to the next `separator`, or all. This span then starts after the separator.
    HOST_DEVICE TextSpan take_until(u8 separator) {
        TextSpan part = {start, start};
        while (part.end < end && *part.end != separator) ++part.end;
        start = part.end < end ? part.end + 1 : end;
        return part;
    }
};

// Return the text of a header line after its first blank or tab. name: the start of the read's name.
HOST_DEVICE TextSpan comment_of(const u8* name) {
    while (*name != ' ' && *name != '\t' && *name != '\n') ++name;
    TextSpan comment = {name, name};
    while (*comment.end != '\n') ++comment.end;
    if (comment.start < comment.end) ++comment.start;
    if (comment.start < comment.end && comment.end[-1] == '\r') --comment.end;
    return comment;
}

struct Integer {
    i64 value;
    bool is_valid;
    HOST_DEVICE bool within(i64 min, i64 max) const { return is_valid && min <= value && value <= max; }
};

HOST_DEVICE bool is_digit(u8 c) { return '0' <= c && c <= '9'; }
// Parse digits after an optional sign; other text is not valid. Large values are limited to 2^40.
HOST_DEVICE Integer parse_integer(TextSpan text) {
    bool negative = text.length() && *text.start == '-';
    if (negative || (text.length() && *text.start == '+')) ++text.start;
    Integer result = {0, text.length() > 0 && text.all(is_digit)};
    for (; result.is_valid && text.start < text.end; ++text.start)
        result.value = minimum(10 * result.value + (*text.start - '0'), (i64)1 << 40);  // beyond the range of any tag
    if (negative) result.value = -result.value;
    return result;
}

struct Decimal {
    double value;
    bool is_valid;
};

// Parse a decimal number. Up to 15 digits and a power of ten up to 22 give the nearest double on every machine: both
// are exact, so their product or quotient is rounded once. Further digits are dropped, and larger powers are rounded;
// converted to float the value is still the nearest float or its neighbour.
HOST_DEVICE Decimal parse_decimal(TextSpan text) {
    const i64 max_digits = 900719925474098;  // one more digit still gives less than 2^53
    bool negative = text.length() && *text.start == '-', in_fraction = false, any = false;
    if (negative || (text.length() && *text.start == '+')) ++text.start;
    i64 digits = 0, exponent = 0;
    for (; text.start < text.end && (is_digit(*text.start) || (*text.start == '.' && !in_fraction)); ++text.start) {
        if (*text.start == '.') {
            in_fraction = true;
            continue;
        }
        any = true;
        if (digits <= max_digits) digits = 10 * digits + (*text.start - '0'), exponent -= in_fraction;
        else exponent += !in_fraction;
    }
    if (text.length() && any && (*text.start | 32) == 'e') {
        Integer power = parse_integer(text.after(1));
        any = power.is_valid;
        exponent += clamp<i64>(power.value, -100000, 100000);
        text.start = text.end;
    }
    double power = 1, value = (double)digits;
    for (i64 i = 0; i < minimum(exponent < 0 ? -exponent : exponent, (i64)100); ++i) power *= 10;
    value = exponent < 0 ? value / power : value * power;
    return Decimal{negative ? -value : value, any && text.length() == 0};
}

// An integer type of BAM: its size and its smallest and largest value. Signed types have lower-case letters.
struct IntegerType {
    i32 bytes;
    i64 min, max;
    HOST_DEVICE bool holds(TextSpan text) const { return parse_integer(text).within(min, max); }
};

// Return the integer type of a BAM type letter, one of cCsSiI; its size is 0 for another letter.
HOST_DEVICE IntegerType integer_type(u8 letter) {
    u8 small = letter | 32;
    i32 bytes = small == 'c' ? 1 : small == 's' ? 2 : small == 'i' ? 4 : 0;
    i64 values = (i64)1 << 8 * bytes, min = letter == small ? -values / 2 : 0;
    return bytes ? IntegerType{bytes, min, min + values - 1} : IntegerType{0, 0, 0};
}

HOST_DEVICE bool is_letter(u8 c) { return (u8)((c | 32) - 'a') < 26; }
HOST_DEVICE bool is_hexadecimal(u8 c) { return is_digit(c) || ('A' <= c && c <= 'F'); }
HOST_DEVICE bool is_printable(u8 c) { return ' ' <= c && c <= '~'; }
// Return true if `value` is the letter of an element type followed by elements, each after a comma.
HOST_DEVICE bool is_array(TextSpan value) {
    TextSpan type = value.take_until(',');
    if (type.length() != 1 || (*type.start != 'f' && !integer_type(*type.start).bytes)) return false;
    for (bool more = value.start > type.end; more;) {
        TextSpan element = value.take_until(',');
        if (*type.start == 'f' ? !parse_decimal(element).is_valid : !integer_type(*type.start).holds(element))
            return false;
        more = value.start > element.end;
    }
    return true;
}

// Return true if the text is a valid SAM tag, NAME:TYPE:VALUE.
HOST_DEVICE bool is_tag(TextSpan tag) {
    const u8* at = tag.start;
    if (tag.length() < 5 || at[2] != ':' || at[4] != ':' || !is_letter(at[0]) || !(is_letter(at[1]) || is_digit(at[1])))
        return false;
    TextSpan value = tag.after(5);
    u8 type = at[3];
    if (type == 'A') return value.length() == 1 && *value.start != ' ' && is_printable(*value.start);
    if (type == 'i') return parse_integer(value).within(integer_type('i').min, integer_type('I').max);
    if (type == 'f') return parse_decimal(value).is_valid;
    if (type == 'Z') return value.all(is_printable);
    if (type == 'H') return value.length() % 2 == 0 && value.all(is_hexadecimal);
    return type == 'B' && is_array(value);
}

// Return true if the comment is empty or valid SAM tags between tabs.
HOST_DEVICE bool are_tags(TextSpan comment) {
    for (bool more = comment.length(); more;) {
        TextSpan tag = comment.take_until('\t');
        if (!is_tag(tag)) return false;
        more = comment.start > tag.end;
    }
    return true;
}

// An Illumina comment such as 1:N:0:ACGT+TTGA: mate, failed checks (Y or N), flags, sample index or number.
struct IlluminaComment {
    TextSpan index;
    bool is_valid, has_failed;
};

// Return true for the characters of a sample index that is not a number.
HOST_DEVICE bool is_index_character(u8 c) {
    return c == 'A' || c == 'C' || c == 'G' || c == 'T' || c == 'N' || c == '+';
}
// Parse a comment; is_valid: it has Illumina's form. A sample index that is a number becomes empty.
HOST_DEVICE IlluminaComment illumina_comment(TextSpan comment) {
    TextSpan mate = comment.take_until(':'), failed = comment.take_until(':'), flags = comment.take_until(':');
    bool are_fields = mate.length() == 1 && (*mate.start == '1' || *mate.start == '2') && failed.length() == 1 &&
            (*failed.start == 'Y' || *failed.start == 'N') && flags.length() && flags.all(is_digit);
    bool is_number = comment.all(is_digit);
    if (!are_fields || !(is_number || comment.all(is_index_character))) return {comment, false, false};
    return {is_number ? comment.after(comment.length()) : comment, true, *failed.start == 'Y'};
}
