// tests/fuzz/protocol_seeds.hpp - seeds of the protocol fuzzer: one message of each kind

#pragma once

#include "tests/fuzz/protocol_target.hpp"

namespace gputext::testing {

using Input = std::vector<std::uint8_t>;

inline Input seed_input(std::uint8_t kind, std::uint8_t number,
                        std::span<const std::uint8_t> rest) {
    Input input{kind, number};
    input.insert(input.end(), rest.begin(), rest.end());
    return input;
}

template <class T>
std::span<const std::uint8_t> raw_bytes(const std::vector<T>& array) {
    return {reinterpret_cast<const std::uint8_t*>(array.data()), array.size() * sizeof(T)};
}

/// Messages with their fields filled.
inline std::vector<Message> sample_messages() {
    SubmitNearDuplicates submit;
    submit.documents = 7;
    submit.bytes_size = 1000;
    submit.parameters.threshold = 0.05;
    submit.parameters.signature_length = 100;
    submit.parameters.memory_limit = 1 << 20;
    submit.character_lengths.fill(1);
    SubmitNearDuplicates with_signatures = submit;
    with_signatures.has_signatures = true;
    with_signatures.signature_bytes = 500;
    with_signatures.parameters.mode = NearDuplicateMode::exact;
    SubmitNearDuplicates between = submit;
    between.parameters.split = 3;
    SubmitNearDuplicates in_parts = with_signatures;
    in_parts.bytes_size = 1 << 20;
    in_parts.bytes_parts = {16, 1 << 16};
    const MatrixShape dense{ElementType::float64, 7, 30, false, 210};
    const MatrixShape sparse{ElementType::float32, 9, 1000, true, 50};
    SubmitKnn neighbors;
    neighbors.search.queries = dense;
    neighbors.search.items = {ElementType::int32, 5, 30, false, 150};
    neighbors.parameters.k = 10;
    SubmitKnn of_parts = neighbors;
    of_parts.search.queries = {ElementType::float64, 700, 30, false, 21000, {3, 1 << 16}};
    SubmitKnn within;
    within.search.queries = within.search.items = sparse;
    within.search.has_keys = true;
    within.search.has_matches = true;
    within.parameters.k = KnnParameters::all_items;
    within.parameters.metric = Metric::manhattan;
    within.parameters.radius = 0.5;
    within.parameters.include_ties = true;
    SubmitTermKnn texts;
    texts.search.queries = sparse;
    texts.search.items = {ElementType::int32, 20, 1000, true, 300};
    texts.search.has_matches = true;
    texts.has_factors = true;
    texts.terms.min_document_frequency = 5;
    texts.parameters.k = 32;
    texts.parameters.radius = 1.5;
    SubmitNearestStrings names;
    names.queries = {9, 200};
    names.items = {20, 500};
    names.has_keys = names.has_matches = true;
    names.parameters.metric = StringMetric::jaro_winkler;
    names.parameters.radius = 0.25;
    SubmitNearestBits hashes;
    hashes.search.queries = {ElementType::bit, 9, 70, false, 630};
    hashes.search.items = {ElementType::bit, 20, 70, false, 1400};
    hashes.search.has_keys = true;
    hashes.parameters.metric = BitMetric::jaccard;
    hashes.parameters.radius = 0.25;
    SubmitOutlierFactor outliers;
    outliers.items = sparse;
    outliers.parameters.k = 20;
    outliers.parameters.ties = TieRule::breunig;
    SubmitDbscan dense_regions;
    dense_regions.items = dense;
    dense_regions.parameters.epsilon = 0.05;
    dense_regions.parameters.min_points = 4;
    SubmitKMeans clusters;
    clusters.items = dense;
    clusters.parameters.k = 2;
    clusters.parameters.metric = Metric::cosine;
    SubmitHnswLinks linked;
    linked.values = dense;
    linked.parameters.candidates = 20;
    linked.parameters.places = 8;
    linked.linked = 2;
    linked.centroids = {ElementType::float32, 2, dense.dimensions, false, 2 * dense.dimensions};
    SubmitCosineSimilarity similarities;
    similarities.query = {ElementType::float16, 1, 30, false, 30};
    similarities.items = dense;
    SubmitWordLookup lookup;
    lookup.dictionary_bytes = 2000;
    lookup.words = {30, 200};
    SubmitTrieBuild build;
    build.words = {1000, 9000};
    build.limits.device_memory_limit = 1 << 30;
    SubmitWordSimilarity thesaurus;
    thesaurus.shape.words = 100;
    thesaurus.count = 3000;
    thesaurus.shape.window = 3;
    thesaurus.weighting.discount = 0.95;
    thesaurus.parameters.measure = WordMeasure::cosine;
    thesaurus.parameters.top_k = 20;
    SubmitWordSimilarity counted = thesaurus;
    counted.counted = true;
    counted.shape.positions = false;
    counted.weighting.weight = WordWeight::count;
    counted.weighting.features = 600;
    SubmitWord2Vec training;
    training.words = 100;
    training.tokens = 3000;
    training.parameters.model = WordModel::cbow;
    training.parameters.dimensions = 16;
    training.parameters.epochs = 5;
    training.parameters.learning_rate = 0.05f;
    training.parameters.seed = 7;
    SubmitWord2Vec more_training = training;
    more_training.known = 90;
    more_training.parameters.far_count = 5;
    more_training.sample = 1e-4;
    SubmitWordMovers movers;
    movers.vectors = {ElementType::float32, 50, 8, false, 400};
    movers.pairs = 6;
    movers.masses = 30;
    movers.parameters.method = MoversMethod::relaxed;
    SubmitSequenceProbability sequences;
    sequences.vectors = sequences.outputs = movers.vectors;
    sequences.sequences = 4;
    sequences.tokens = 30;
    const JobReport report{0, "fake device 0", 0.25, 1, 3072, {{"hashing", 0.125}}};
    const RunningJob job{17, "near_duplicates", 1, "verifying candidates", 3, 9, 2, 0.5, 7, 1000,
                         1.5};
    return {Hello{42, "0.1.0"},
            submit,
            with_signatures,
            between,
            in_parts,
            Progress{"computing signatures", 5, 10, 0, 0, 0},
            Progress{"training", 5, 10, 0, 3, 2.5},
            NearDuplicatesReply{report, 7, 3},
            neighbors,
            of_parts,
            within,
            texts,
            names,
            hashes,
            outliers,
            dense_regions,
            clusters,
            linked,
            similarities,
            lookup,
            build,
            thesaurus,
            counted,
            training,
            more_training,
            Word2VecReply{report, 100, 16, 30, 100},
            movers,
            sequences,
            KnnReply{report, 7, 70, 90, 1},
            ScoresReply{report, 9},
            DbscanReply{report, 9, 2},
            HnswLinksReply{report, 9},
            WordLookupReply{report, 30},
            TrieBuildReply{report, 1000, 5000},
            SequenceProbabilityReply{report, 4, 30},
            ErrorReply{ErrorCode::device_error, "the device failed", "Try again.", 2},
            AskDevices{},
            DeviceList{{{"fake device 0", 1 << 30, "none"}, {"fake device 1", 1 << 20, ""}}, ""},
            DeviceList{{}, "there is no driver"},
            AskActivity{},
            ActivityList{{job, job, job}},
            AskCounters{},
            CounterValues{1, 2, 3, 4, 5, 6, 7},
            InjectFault{"in_job:out_of_memory:2"},
            InjectFault{"in_job:device_error:1:3"},
            FindValues{3, 1000, {5, ValueForm::vector, ElementType::float16, 300}, 70},
            FoundValues{70, 20},
            FoundValues{70, 70},
            AddValues{12000, {}},
            AddValues{1 << 20, {16, 1 << 16}},
            AddedValues{9},
            FindValues{3, 1000, {5, ValueForm::word_positions, ElementType::float32, 0, 99}, 70},
            AddTerms{12000, 7, 100},
            TakeValues{true, false},
            TakeTerms{},
            TakenValues{42000, {2, 1 << 15}, 10, false},
            TakenTerms{32, 70},
            TakenTerms{0, 0},
            TakeResident{10},
            TakenResident{true, 42000, {2, 1 << 15}},
            TakenResident{},
            AwaitValues{10},
            AwaitedValues{},
            AskResidentTables{},
            ResidentTables{2, 50000, 1 << 20},
            ResidentTables{0, 0, 1 << 20},
            ForgetValues{5, 16384},
            ForgottenValues{70}};
}

/// One message of each type, its fields as they are by default.
template <class... Types>
std::vector<Message> first_messages(TypeList<Types...>) {
    return {Types()...};
}

inline std::vector<Input> seed_inputs() {
    std::vector<Message> messages = sample_messages();
    for (Message& message : first_messages(Messages())) messages.push_back(std::move(message));
    std::vector<Input> inputs;
    for (const Message& message : messages)
        inputs.push_back(
            seed_input(0, static_cast<std::uint8_t>(descriptors_of(message)), encode(message)));
    const std::vector<Extent> extents{{0, 10}, {10, 0}, {12, 500}};
    inputs.push_back(seed_input(1, 9, raw_bytes(extents)));

    const std::vector<std::optional<Ctph>> signatures{Ctph{3, 4, "abcdxy"}, std::nullopt,
                                                      Ctph{0, 0, ""}, Ctph{33, 2, "+/"}};
    inputs.push_back(seed_input(2, 4, pack_signatures(signatures)));

    const std::vector<std::uint32_t> first_copies{0, 1, 0, 3, 1, 5};
    const std::vector<NearPair> pairs{{0, 1, 0.01}, {0, 5, 0.3}, {1, 3, 0.04}};
    Input answer = seed_input(3, 6, raw_bytes(first_copies));
    answer.insert(answer.end(), raw_bytes(pairs).begin(), raw_bytes(pairs).end());
    inputs.push_back(answer);

    const std::vector<std::uint64_t> begins{0, 2, 2, 3};
    inputs.push_back(seed_input(4, 3, raw_bytes(begins)));
    const std::vector<double> distances{0.5, 1, 0};
    const std::vector<std::uint32_t> items{4, 1, 0};
    Input neighbors = seed_input(5, 3, raw_bytes(begins));
    neighbors.insert(neighbors.end(), raw_bytes(distances).begin(), raw_bytes(distances).end());
    neighbors.insert(neighbors.end(), raw_bytes(items).begin(), raw_bytes(items).end());
    inputs.push_back(neighbors);
    const std::vector<std::uint64_t> word_begins{0, 5, 5, 9};
    inputs.push_back(seed_input(6, 9, raw_bytes(word_begins)));
    const std::vector<std::uint32_t> codes{4, Trie::kNone, 0};
    inputs.push_back(seed_input(7, 5, raw_bytes(codes)));

    const std::vector<std::uint64_t> sides{0, 2, 4, 5, 6};
    const std::vector<std::uint32_t> totals{6, 4};
    const std::vector<WordMass> masses{{1, 2}, {3, 4}, {2, 3}, {9, 3}, {5, 4}, {6, 4}};
    Input pairs_of_texts = seed_input(8, 2, raw_bytes(sides));
    for (const auto& part : {raw_bytes(totals), raw_bytes(masses)})
        pairs_of_texts.insert(pairs_of_texts.end(), part.begin(), part.end());
    inputs.push_back(pairs_of_texts);
    const std::vector<std::uint32_t> tokens{1, 39, 7};
    Input sequences = seed_input(9, 3, raw_bytes(begins));
    sequences.insert(sequences.end(), raw_bytes(tokens).begin(), raw_bytes(tokens).end());
    inputs.push_back(sequences);
    const std::vector<std::uint32_t> missing{0, 3, 8};
    inputs.push_back(seed_input(10, 9, raw_bytes(missing)));
    const std::vector<ValuePointer> pointers{{1, 2, 3, 120}, {1, 3, ValuePointer::never, 120}};
    inputs.push_back(seed_input(11, 30, raw_bytes(pointers)));
    const std::vector<TermPlace> places{{0, 16, 84}, {1, 0, 24}, {1, 24, 0}};
    inputs.push_back(seed_input(12, 100, raw_bytes(places)));
    const std::vector<std::uint64_t> ends{0, 24, 24, 80};
    inputs.push_back(seed_input(13, 20, raw_bytes(ends)));
    return inputs;
}

}  // namespace gputext::testing
