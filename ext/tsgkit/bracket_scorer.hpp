// Bracket counts of a test file against a gold file, one tree a line, as the program EVALB counts them.
// Last stage of the flow: trees again -> a score. Without limits on words, brackets, depth or line length.
//
//   recall = sum(matched) / sum(gold brackets)      precision = sum(matched) / sum(test brackets)
//
// over the sentences whose words agree. A bracket is (start, end, label); matching is one-to-one. Every step
// is linear or n log n in the length of the line, and nothing recurses, so any bytes can be scored.
#ifndef TSGKIT_BRACKET_SCORER_HPP
#define TSGKIT_BRACKET_SCORER_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tsgkit {

using symbol_t = int32_t;
constexpr int32_t kNone = -1;

struct ScorerSettings {
    bool labelled = true;
    int64_t cutoff_length = 40;
    int64_t max_errors = 10;
    bool stop_on_errors = false;  // at error number max_errors + 2, where EVALB gives up
    std::vector<std::string> delete_labels;
    std::vector<std::string> delete_labels_for_length;
    std::vector<std::string> quote_labels;
    std::vector<std::pair<std::string, std::string>> equal_labels;
    std::vector<std::pair<std::string, std::string>> equal_words;
};

// The labels seen so far, as small integers, with what the settings say about each.
class LabelTable {
public:
    struct Label {
        std::string text;
        symbol_t bare = kNone;  // without what follows the first - or =: the label of a bracket
        bool deletes_word = false;
        bool deletes_bracket = false;  // meaningful for a bare label
        bool ignored_for_length = false;
        bool may_be_quote = false;
        std::vector<symbol_t> equals;  // other labels that match this one
    };

    void configure(const ScorerSettings& settings) {
        settings_ = &settings;
        labels_.clear();
        slots_.assign(1024, kNone);
        for (const auto& [left, right] : settings.equal_labels) {
            symbol_t left_id = intern(left), right_id = intern(right);
            if (left_id == right_id) continue;
            labels_[left_id].equals.push_back(right_id);
            labels_[right_id].equals.push_back(left_id);
        }
        // Whether a bracket is deleted depends on the pairs of equal labels, which are complete only now.
        for (symbol_t id = 0; id < size(); ++id) labels_[id].deletes_bracket = deletes_bracket(id);
    }

    symbol_t intern(std::string_view text) {
        size_t slot = hash(text) & (slots_.size() - 1);
        for (; slots_[slot] != kNone; slot = (slot + 1) & (slots_.size() - 1))
            if (labels_[slots_[slot]].text == text) return slots_[slot];
        return add(text, slot);
    }

    symbol_t size() const { return static_cast<symbol_t>(labels_.size()); }
    const Label& operator[](symbol_t id) const { return labels_[id]; }

    bool match(symbol_t left, symbol_t right) const {
        if (left == right) return true;
        const auto& equals = labels_[left].equals;
        return std::find(equals.begin(), equals.end(), right) != equals.end();
    }

private:
    static size_t hash(std::string_view text) {
        uint64_t value = 0xcbf29ce484222325u;
        for (unsigned char byte : text) value = (value ^ byte) * 0x100000001b3u;
        return static_cast<size_t>(value ^ (value >> 32));
    }

    static bool contains(const std::vector<std::string>& list, const std::string& text) {
        return std::find(list.begin(), list.end(), text) != list.end();
    }

    symbol_t add(std::string_view text, size_t slot) {
        symbol_t id = size();
        slots_[slot] = id;
        Label label;
        label.text = text;
        label.deletes_word = contains(settings_->delete_labels, label.text);
        label.ignored_for_length = contains(settings_->delete_labels_for_length, label.text);
        label.may_be_quote = contains(settings_->quote_labels, label.text);
        labels_.push_back(std::move(label));
        if (labels_.size() * 2 > slots_.size()) grow();
        labels_[id].deletes_bracket = deletes_bracket(id);
        size_t mark = text.find_first_of("-=");
        // One level of recursion: a bare label has no mark.
        symbol_t bare = mark == std::string_view::npos ? id : intern(text.substr(0, mark));
        labels_[id].bare = bare;
        return id;
    }

    bool deletes_bracket(symbol_t id) const {
        if (labels_[id].deletes_word) return true;
        for (symbol_t other : labels_[id].equals)
            if (labels_[other].deletes_word) return true;
        return false;
    }

    void grow() {
        slots_.assign(slots_.size() * 2, kNone);
        for (symbol_t id = 0; id < size(); ++id) {
            size_t slot = hash(labels_[id].text) & (slots_.size() - 1);
            while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = id;
        }
    }

    const ScorerSettings* settings_ = nullptr;
    std::vector<Label> labels_;
    std::vector<symbol_t> slots_;  // open addressing, a power of two, at most half full
};

enum class ByteClass : uint8_t { text, space, open, close };

// White space is that of C's isspace in the C locale; all bytes of other scripts are text.
constexpr std::array<ByteClass, 256> byte_classes() {
    std::array<ByteClass, 256> classes{};
    for (unsigned char byte : {' ', '\t', '\n', '\v', '\f', '\r'}) classes[byte] = ByteClass::space;
    classes['('] = ByteClass::open;
    classes[')'] = ByteClass::close;
    return classes;
}

constexpr std::array<ByteClass, 256> kByteClasses = byte_classes();

inline ByteClass byte_class(char byte) { return kByteClasses[static_cast<unsigned char>(byte)]; }

struct Word {
    std::string_view text;
    symbol_t tag;
};

struct Bracket {
    int32_t start;
    int32_t end;  // kNone while open, and for ever if the line never closes it
    symbol_t label;  // bare
    int32_t parent;
};

// A quotation mark, deleted or not, with what is needed to put it back among the words.
struct Quote {
    Word word;
    int32_t index;  // of the word it is, or would be
    int32_t next_bracket;  // brackets from this one on were opened after it
    int32_t parent;  // the innermost bracket around it
};

struct Tree {
    std::vector<Word> words;
    std::vector<Bracket> brackets;  // in the order in which they open
    std::vector<Quote> quotes;
    int32_t length = 0;

    void clear() {
        words.clear();
        brackets.clear();
        quotes.clear();
        length = 0;
    }
    int32_t n_words() const { return static_cast<int32_t>(words.size()); }
};

enum class Side : int32_t { gold = 0, test = 1 };

enum class ProblemKind : int32_t {
    unclosed = 0,       // brackets that the line never closes
    extra_close = 1,    // a closing bracket too many
    stray_text = 2,     // text that is not the word of a tag; EVALB never gets past it
    length_differs = 3,
    word_differs = 4,
    gold_longer = 5,    // more lines than the test file
    test_longer = 6,
};

struct Problem {
    ProblemKind kind;
    Side side;
    int64_t line;
    int64_t column;  // in characters of UTF-8, from 1; 0 if the problem is the whole line
    int64_t n_gold_words;
    int64_t n_test_words;
    std::string gold_word;  // or the stray text
    std::string test_word;
};

enum class Status : int32_t { valid = 0, error = 1, skip = 2 };

struct Row {
    int32_t length;
    int32_t status;
    int32_t matched;
    int32_t gold;
    int32_t test;
    int32_t crossing;
    int32_t words;
    int32_t tags;
    // The same sentence in the strict count, whatever its status.
    int32_t all_gold;
    int32_t all_test;
    int32_t all_words;
};

struct Totals {
    int64_t sentences = 0, errors = 0, skips = 0, complete = 0;
    int64_t gold = 0, test = 0, matched = 0;
    int64_t crossing = 0, no_crossing = 0, two_or_less_crossing = 0;
    int64_t words = 0, tags = 0;

    void add(const Row& row) {
        ++sentences;
        if (row.status == static_cast<int32_t>(Status::error)) {
            ++errors;
        } else if (row.status == static_cast<int32_t>(Status::skip)) {
            ++skips;
        } else {
            gold += row.gold;
            test += row.test;
            matched += row.matched;
            complete += row.gold == row.test && row.test == row.matched;
            crossing += row.crossing;
            no_crossing += row.crossing == 0;
            two_or_less_crossing += row.crossing <= 2;
            words += row.words;
            tags += row.tags;
        }
    }
};

// Everything the files hold, charged: sentences without a usable test tree have no match.
struct StrictTotals {
    int64_t sentences = 0, complete = 0, gold = 0, test = 0, matched = 0, words = 0, tags = 0;

    void add(const Row& row) {
        gold += row.all_gold;
        test += row.all_test;
        words += row.all_words;
        sentences += row.all_words > 0;
        if (row.status == static_cast<int32_t>(Status::valid)) {
            matched += row.matched;
            tags += row.tags;
            complete += row.gold == row.test && row.test == row.matched;
        }
    }
};

struct LabelCounts {
    int64_t gold = 0, test = 0, matched_gold = 0, matched_test = 0;
};

// Which test brackets cross a gold bracket: overlap it without one containing the other. Both lists are
// sorted by start; nothing else is assumed of them.
class CrossingCounter {
public:
    int32_t count(const std::vector<Bracket>& gold, const std::vector<Bracket>& test) {
        crosses_.assign(test.size(), 0);
        mark_overlaps_from_left(gold, test);
        mark_overlaps_from_right(gold, test);
        return static_cast<int32_t>(std::count(crosses_.begin(), crosses_.end(), 1));
    }

private:
    // gold.start < start < gold.end < end. Of the gold brackets that start before, those that end by `start`
    // can be forgotten, since starts only grow; of the others the first to end decides.
    void mark_overlaps_from_left(const std::vector<Bracket>& gold, const std::vector<Bracket>& test) {
        ends_.clear();
        size_t next_gold = 0;
        for (size_t index = 0; index < test.size(); ++index) {
            const int32_t start = test[index].start;
            for (; next_gold < gold.size() && gold[next_gold].start < start; ++next_gold) {
                ends_.push_back(gold[next_gold].end);
                std::push_heap(ends_.begin(), ends_.end(), std::greater<int32_t>());
            }
            while (!ends_.empty() && ends_.front() <= start) {
                std::pop_heap(ends_.begin(), ends_.end(), std::greater<int32_t>());
                ends_.pop_back();
            }
            if (!ends_.empty() && ends_.front() < test[index].end) crosses_[index] = 1;
        }
    }

    // start < gold.start < end < gold.end. Of the gold brackets that start after, one is useless if another
    // starts no later and ends no earlier; the rest is a front on which starts and ends fall together.
    void mark_overlaps_from_right(const std::vector<Bracket>& gold, const std::vector<Bracket>& test) {
        front_.clear();
        size_t n_left = gold.size();
        for (size_t index = test.size(); index-- > 0;) {
            const int32_t start = test[index].start, end = test[index].end;
            for (; n_left > 0 && gold[n_left - 1].start > start; --n_left) {
                const Bracket& bracket = gold[n_left - 1];
                while (!front_.empty() && front_.back().second <= bracket.end) front_.pop_back();
                front_.emplace_back(bracket.start, bracket.end);
            }
            auto farthest = std::partition_point(front_.begin(), front_.end(),
                                                 [end](const auto& span) { return span.first >= end; });
            if (farthest != front_.end() && farthest->second > end) crosses_[index] = 1;
        }
    }

    std::vector<uint8_t> crosses_;
    std::vector<int32_t> ends_;  // a heap, least first
    std::vector<std::pair<int32_t, int32_t>> front_;
};

class BracketScorer {
public:
    ScorerSettings settings;
    std::vector<Row> rows;
    std::vector<Problem> problems;
    Totals all, cutoff;
    StrictTotals strict;
    std::vector<LabelCounts> label_counts;               // by bare label
    std::unordered_map<uint64_t, int64_t> confusions;    // gold label << 32 | test label -> same spans
    int64_t n_errors = 0;
    bool stopped = false;

    // The bytes stay with the caller and must outlive the scoring.
    void begin(const char* gold, size_t gold_size, const char* test, size_t test_size) {
        labels_.configure(settings);
        files_[0].open(gold, gold_size);
        files_[1].open(test, test_size);
        line_ = 0;
    }

    const std::string& label_text(symbol_t id) const { return labels_[id].text; }
    int64_t n_bytes_left() const { return files_[0].left() + files_[1].left(); }

    // Scores at most n_sentences more; false when nothing is left.
    bool advance(int64_t n_sentences) {
        for (; n_sentences > 0 && !stopped; --n_sentences) {
            const bool has_gold = files_[0].next_line(), has_test = files_[1].next_line();
            if (!has_gold && !has_test) return false;
            ++line_;
            if (has_gold && has_test) {
                score_pair();
            } else {
                charge_unpaired(has_gold ? Side::gold : Side::test);
            }
        }
        return !stopped && n_bytes_left() > 0;
    }

private:
    // A file in memory, a line at a time.
    struct Lines {
        const char* position = nullptr;
        const char* end = nullptr;
        std::string_view line;
        bool has_nul = false;

        void open(const char* data, size_t size) {
            position = data;
            end = data + size;
            has_nul = size > 0 && std::memchr(data, 0, size) != nullptr;
            if (size >= 3 && std::memcmp(data, "\xef\xbb\xbf", 3) == 0) position += 3;  // byte-order mark
        }
        int64_t left() const { return end - position; }
        bool next_line() {
            if (position == end) return false;
            const void* newline = std::memchr(position, '\n', static_cast<size_t>(end - position));
            const char* stop = newline ? static_cast<const char*>(newline) : end;
            if (stop - position >= std::numeric_limits<int32_t>::max())
                throw std::overflow_error("a line of two gigabytes or more cannot be scored");
            line = std::string_view(position, static_cast<size_t>(stop - position));
            position = newline ? stop + 1 : end;
            return true;
        }
    };

    static const char* skip_spaces(const char* position, const char* end) {
        while (position < end && byte_class(*position) == ByteClass::space) ++position;
        return position;
    }

    static const char* skip_text(const char* position, const char* end) {
        while (position < end && byte_class(*position) == ByteClass::text) ++position;
        return position;
    }

    // A NUL byte ends a C string: EVALB sees a label or word up to it.
    static std::string_view text_between(const char* begin, const char* end, bool has_nul) {
        std::string_view text(begin, static_cast<size_t>(end - begin));
        return has_nul ? text.substr(0, text.find('\0')) : text;
    }

    void read_tree(Side side, Tree& tree) {
        const Lines& file = files_[static_cast<int>(side)];
        const char* position = file.line.data();
        const char* const end = position + file.line.size();
        tree.clear();
        int32_t parent = kNone;
        bool has_stray_text = false;
        counted_ = position;
        column_ = 1;
        while (position < end && *position != '\0') {
            switch (byte_class(*position)) {
                case ByteClass::space:
                    ++position;
                    break;
                case ByteClass::open:
                    position = read_open(side, tree, position + 1, end, parent);
                    break;
                case ByteClass::close:
                    if (parent == kNone) {
                        report(ProblemKind::extra_close, side, position);
                    } else {
                        tree.brackets[parent].end = tree.n_words();
                        parent = tree.brackets[parent].parent;
                    }
                    ++position;
                    break;
                case ByteClass::text: {
                    const char* begin = position;
                    position = skip_text(position, end);
                    const std::string_view text = text_between(begin, position, file.has_nul);
                    if (!has_stray_text) report(ProblemKind::stray_text, side, begin, text);
                    has_stray_text = true;
                }
            }
        }
        if (parent != kNone) report(ProblemKind::unclosed, side, position);
    }

    // What follows an opening bracket: a tag and its word, or the label of a bracket, which becomes `parent`.
    const char* read_open(Side side, Tree& tree, const char* position, const char* end, int32_t& parent) {
        const bool has_nul = files_[static_cast<int>(side)].has_nul;
        const char* after = skip_text(position, end);
        const symbol_t label = labels_.intern(text_between(position, after, has_nul));
        if (after < end && byte_class(*after) == ByteClass::space) {
            const char* word = skip_spaces(after, end);
            const char* word_end = skip_text(word, end);
            if (word_end < end && *word_end == ')') {
                add_word(tree, {text_between(word, word_end, has_nul), label}, parent);
                return word_end + 1;
            }
        }
        tree.brackets.push_back({tree.n_words(), kNone, labels_[label].bare, parent});
        parent = static_cast<int32_t>(tree.brackets.size()) - 1;
        return after;
    }

    void add_word(Tree& tree, Word word, int32_t parent) {
        const LabelTable::Label& tag = labels_[word.tag];
        tree.length += !tag.ignored_for_length;
        if (tag.may_be_quote && (word.text == "'" || word.text == "\"" || word.text == "/"))
            tree.quotes.push_back({word, tree.n_words(), static_cast<int32_t>(tree.brackets.size()), parent});
        if (!tag.deletes_word) tree.words.push_back(word);
    }

    void report(ProblemKind kind, Side side, const char* place, std::string_view text = {}) {
        if (!reports_syntax_) return;
        // Counting goes on where the last problem of this line was, so that a line is counted once.
        for (; counted_ < place; ++counted_) {
            const bool continues_character = (static_cast<unsigned char>(*counted_) & 0xc0) == 0x80;
            column_ += !continues_character;
        }
        add_problem({kind, side, line_, column_, 0, 0, std::string(text), {}});
        // EVALB repeats the message about stray text until it has made too many errors.
        if (kind == ProblemKind::stray_text && settings.stop_on_errors) stopped = true;
    }

    void add_problem(Problem problem) {
        problems.push_back(std::move(problem));
        if (n_errors++ > settings.max_errors && settings.stop_on_errors) stopped = true;
        status_ = Status::error;
    }

    void score_pair() {
        status_ = Status::valid;
        read_tree(Side::gold, gold_);
        if (stopped) return;
        read_tree(Side::test, test_);
        if (stopped) return;
        Row row{};
        row.length = gold_.length;
        row.all_gold = count_kept(gold_);
        row.all_test = count_kept(test_);
        row.all_words = gold_.n_words();
        if (test_.words.empty()) {
            status_ = Status::skip;
        } else if (same_words()) {
            compare(row);
        }
        if (stopped) return;
        row.status = static_cast<int32_t>(status_);
        rows.push_back(row);
        all.add(row);
        if (row.length <= settings.cutoff_length) cutoff.add(row);
        strict.add(row);
    }

    // A line without partner is no sentence to EVALB. It reads the first one of the gold file and complains.
    void charge_unpaired(Side side) {
        Tree& tree = side == Side::gold ? gold_ : test_;
        const bool is_first = line_ == static_cast<int64_t>(rows.size()) + 1;
        reports_syntax_ = is_first && side == Side::gold;
        read_tree(side, tree);
        if (is_first && !stopped) {
            const ProblemKind kind = side == Side::gold ? ProblemKind::gold_longer : ProblemKind::test_longer;
            add_problem({kind, side, line_, 0, 0, 0, {}, {}});
        }
        if (side == Side::gold) {
            strict.gold += count_kept(tree);
            strict.words += tree.n_words();
            strict.sentences += !tree.words.empty();
        } else {
            strict.test += count_kept(tree);
        }
    }

    bool is_kept(const Bracket& bracket) const {
        return bracket.start != bracket.end && !labels_[bracket.label].deletes_bracket;
    }

    int32_t count_kept(const Tree& tree) const {
        int32_t n_kept = 0;
        for (const Bracket& bracket : tree.brackets) n_kept += is_kept(bracket);
        return n_kept;
    }

    bool same_words() {
        if (gold_.n_words() != test_.n_words()) repair_quotes();
        if (gold_.n_words() != test_.n_words()) {
            add_mismatch(ProblemKind::length_differs, {}, {});
            return false;
        }
        for (size_t index = 0; index < gold_.words.size(); ++index) {
            const std::string_view gold = gold_.words[index].text, test = test_.words[index].text;
            if (gold != test && !words_match(gold, test)) {
                add_mismatch(ProblemKind::word_differs, gold, test);
                return false;
            }
        }
        return true;
    }

    void add_mismatch(ProblemKind kind, std::string_view gold_word, std::string_view test_word) {
        add_problem({kind, Side::test, line_, 0, gold_.n_words(), test_.n_words(), std::string(gold_word),
                     std::string(test_word)});
    }

    bool words_match(std::string_view gold, std::string_view test) const {
        for (const auto& [left, right] : settings.equal_words)
            if ((gold == left && test == right) || (gold == right && test == left)) return true;
        return false;
    }

    // Where one tree deleted a quotation mark and the other has, at the same place, one under a tag that is
    // not deleted, the deleted one comes back. The place is that of the test mark *before* its own return:
    // a mark that came back is compared with the remaining gold marks at its old place.
    void repair_quotes() {
        const auto stands_before = [](const Quote& quote, int32_t place) { return quote.index < place; };
        for (size_t test_index = 0; test_index < test_.quotes.size(); ++test_index) {
            const int32_t place = test_.quotes[test_index].index;
            // Returning marks move all those after them, so the places stay in order.
            auto gold = std::lower_bound(gold_.quotes.begin(), gold_.quotes.end(), place, stands_before);
            for (; gold != gold_.quotes.end() && gold->index == place; ++gold) {
                const bool gold_deleted = labels_[gold->word.tag].deletes_word;
                const bool test_deleted = labels_[test_.quotes[test_index].word.tag].deletes_word;
                if (gold_deleted && !test_deleted) restore_quote(gold_, gold - gold_.quotes.begin());
                if (test_deleted && !gold_deleted) restore_quote(test_, test_index);
            }
        }
    }

    static void restore_quote(Tree& tree, size_t quote_index) {
        const Quote quote = tree.quotes[quote_index];
        tree.words.insert(tree.words.begin() + quote.index, quote.word);
        for (size_t index = static_cast<size_t>(quote.next_bracket); index < tree.brackets.size(); ++index) {
            ++tree.brackets[index].start;
            ++tree.brackets[index].end;
        }
        for (int32_t around = quote.parent; around != kNone; around = tree.brackets[around].parent)
            ++tree.brackets[around].end;
        for (size_t index = quote_index; index < tree.quotes.size(); ++index) ++tree.quotes[index].index;
    }

    // What was compared is also what the strict count charges: quotation marks may have come back.
    void compare(Row& row) {
        keep_sorted(gold_, kept_gold_);
        keep_sorted(test_, kept_test_);
        row.gold = row.all_gold = static_cast<int32_t>(kept_gold_.size());
        row.test = row.all_test = static_cast<int32_t>(kept_test_.size());
        row.matched = match_brackets();
        row.crossing = crossing_counter_.count(kept_gold_, kept_test_);
        row.words = row.all_words = gold_.n_words();
        for (size_t index = 0; index < gold_.words.size(); ++index)
            row.tags += labels_.match(gold_.words[index].tag, test_.words[index].tag);
    }

    static bool opens_before(const Bracket& left, const Bracket& right) {
        return left.start != right.start ? left.start < right.start : left.end > right.end;
    }

    // The brackets that count. Those of a well-formed tree open in this order already.
    void keep_sorted(const Tree& tree, std::vector<Bracket>& kept) const {
        kept.clear();
        for (const Bracket& bracket : tree.brackets)
            if (is_kept(bracket)) kept.push_back(bracket);
        if (!std::is_sorted(kept.begin(), kept.end(), opens_before))
            std::stable_sort(kept.begin(), kept.end(), opens_before);
    }

    static size_t end_of_span(const std::vector<Bracket>& brackets, size_t begin) {
        size_t end = begin + 1;
        while (end < brackets.size() && brackets[end].start == brackets[begin].start &&
               brackets[end].end == brackets[begin].end)
            ++end;
        return end;
    }

    int32_t match_brackets() {
        const bool counts = status_ == Status::valid;
        if (label_counts.size() < static_cast<size_t>(labels_.size()))
            label_counts.resize(static_cast<size_t>(labels_.size()));
        first_of_label_.resize(static_cast<size_t>(labels_.size()), kNone);
        next_of_label_.resize(kept_test_.size());
        matched_test_.assign(kept_test_.size(), 0);
        if (counts) {
            for (const Bracket& bracket : kept_gold_) ++label_counts[bracket.label].gold;
            for (const Bracket& bracket : kept_test_) ++label_counts[bracket.label].test;
        }
        int32_t n_matched = 0;
        size_t gold = 0, test = 0;
        while (gold < kept_gold_.size() && test < kept_test_.size()) {
            if (opens_before(kept_gold_[gold], kept_test_[test])) {
                ++gold;
            } else if (opens_before(kept_test_[test], kept_gold_[gold])) {
                ++test;
            } else {
                const size_t gold_end = end_of_span(kept_gold_, gold);
                const size_t test_end = end_of_span(kept_test_, test);
                n_matched += match_span(gold, gold_end, test, test_end, counts);
                gold = gold_end;
                test = test_end;
            }
        }
        return n_matched;
    }

    // Brackets over the same words, from the outermost in: every gold bracket takes the first free test
    // bracket of an equal label. The free ones of each label form a chain.
    int32_t match_span(size_t gold_begin, size_t gold_end, size_t test_begin, size_t test_end, bool counts) {
        for (size_t test = test_end; test-- > test_begin;) {
            int32_t& first = first_of_label_[matching_label(kept_test_[test])];
            next_of_label_[test] = first;
            first = static_cast<int32_t>(test);
        }
        unmatched_gold_.clear();
        int32_t n_matched = 0;
        for (size_t gold = gold_begin; gold < gold_end; ++gold) {
            const int32_t test = take_first(matching_label(kept_gold_[gold]));
            if (test == kNone) {
                unmatched_gold_.push_back(kept_gold_[gold].label);
                continue;
            }
            ++n_matched;
            matched_test_[test] = 1;
            if (counts) {
                ++label_counts[kept_gold_[gold].label].matched_gold;
                ++label_counts[kept_test_[test].label].matched_test;
            }
        }
        for (size_t test = test_begin; test < test_end; ++test)
            first_of_label_[matching_label(kept_test_[test])] = kNone;
        if (counts) count_confusions(test_begin, test_end);
        return n_matched;
    }

    symbol_t matching_label(const Bracket& bracket) const { return settings.labelled ? bracket.label : 0; }

    int32_t take_first(symbol_t label) {
        int32_t* best = &first_of_label_[label];
        if (settings.labelled)
            for (symbol_t other : labels_[label].equals) {
                int32_t* first = &first_of_label_[other];
                if (*first != kNone && (*best == kNone || *first < *best)) best = first;
            }
        const int32_t test = *best;
        if (test != kNone) *best = next_of_label_[test];
        return test;
    }

    // What is left over the same words, gold and test, is paired from the outermost in.
    void count_confusions(size_t test_begin, size_t test_end) {
        size_t test = test_begin;
        for (symbol_t gold_label : unmatched_gold_) {
            while (test < test_end && matched_test_[test]) ++test;
            if (test == test_end) return;
            const uint64_t test_label = static_cast<uint64_t>(kept_test_[test].label);
            ++confusions[static_cast<uint64_t>(gold_label) << 32 | test_label];
            ++test;
        }
    }

    LabelTable labels_;
    std::array<Lines, 2> files_;
    int64_t line_ = 0;
    Status status_ = Status::valid;
    bool reports_syntax_ = true;
    const char* counted_ = nullptr;  // up to here the line being read has column_ - 1 characters
    int64_t column_ = 1;
    // Scratch, kept between sentences so that nothing is allocated for most of them.
    Tree gold_, test_;
    std::vector<Bracket> kept_gold_, kept_test_;
    std::vector<int32_t> first_of_label_, next_of_label_;
    std::vector<uint8_t> matched_test_;
    std::vector<symbol_t> unmatched_gold_;
    CrossingCounter crossing_counter_;
};

template <typename Integer>
void append_integer(std::string& text, Integer value, size_t width) {
    char digits[24];
    const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    const size_t n_digits = static_cast<size_t>(end - digits);
    if (n_digits < width) text.append(width - n_digits, ' ');
    text.append(digits, n_digits);
}

// The blanks stay before the number however wide it is.
inline void append_count(std::string& text, size_t n_blanks, int32_t value, size_t width) {
    text.append(n_blanks, ' ');
    append_integer(text, value, width);
}

// part / whole in percent, two decimals in six columns, as C's %6.2f prints the double 100.0 * part / whole.
// In integers, because printf is slow and its decimal point depends on the locale. How the double was rounded
// matters only where the true value lies halfway between two numbers of two decimals.
inline void append_percent(std::string& text, int64_t part, int64_t whole) {
    int64_t hundredths = 0;
    if (whole > 0) {
        hundredths = 10000 * part / whole;
        const int64_t twice_remainder = 2 * (10000 * part % whole);
        bool up = twice_remainder > whole;
        if (twice_remainder == whole) {
            const double value = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
            const double past_half = std::fma(value, 200.0, -static_cast<double>(2 * hundredths + 1));
            up = past_half > 0 || (past_half == 0 && hundredths % 2 == 1);
        }
        hundredths += up;
    }
    append_integer(text, hundredths / 100, 3);
    text.push_back('.');
    text.push_back(static_cast<char>('0' + hundredths % 100 / 10));
    text.push_back(static_cast<char>('0' + hundredths % 10));
}

// The lines of EVALB's table; the sentences are numbered from 1.
inline std::string format_rows(const std::vector<Row>& rows) {
    std::string text;
    text.reserve(rows.size() * 80);
    for (size_t index = 0; index < rows.size(); ++index) {
        const Row& row = rows[index];
        append_integer(text, index + 1, 4);
        append_count(text, 2, row.length, 3);
        append_count(text, 4, row.status, 1);
        text.append("  ");
        append_percent(text, row.matched, row.gold);
        text.push_back(' ');
        append_percent(text, row.matched, row.test);
        append_count(text, 3, row.matched, 3);
        append_count(text, 4, row.gold, 3);
        append_count(text, 2, row.test, 3);
        append_count(text, 4, row.crossing, 3);
        append_count(text, 3, row.words, 4);
        append_count(text, 2, row.tags, 4);
        text.append("   ");
        append_percent(text, row.tags, row.words);
        text.push_back('\n');
    }
    return text;
}

}  // namespace tsgkit

#endif
