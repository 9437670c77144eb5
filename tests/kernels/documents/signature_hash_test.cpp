#include "kernels/documents/detail/signature_hash.hpp"

#include <gtest/gtest.h>

#include "tests/support/device.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::RandomStrings;
using testing::rounds;

/// Documents packed one behind the other, with gaps that must not matter.
struct Packed {
    std::string bytes;
    std::vector<Extent> extents;

    void add(std::string_view document, std::string_view gap = {}) {
        bytes += gap;
        extents.push_back({bytes.size(), document.size()});
        bytes += document;
    }
    Documents documents() const {
        return {reinterpret_cast<const std::uint8_t*>(bytes.data()), extents,
                CharacterLengths::single_byte()};
    }
};

class SignatureHashOnDevice : public testing::OnDevice {
protected:
    void expect_the_cpus(const Packed& packed, std::size_t longest) {
        Execution execution(4);
        auto ring = gpu::UploadRing::create(4);
        ASSERT_TRUE(ring.ok()) << ring.status().message();
        gpu::PackedSignatures signatures;
        const Documents documents = packed.documents();
        Status status =
            gpu::hash_documents(documents, longest, work, **ring, execution, signatures);
        ASSERT_TRUE(status.ok()) << status.message();
        expect_equal(documents, longest, signatures);
    }

    void expect_the_cpus_when_resident(const Packed& packed, std::size_t longest) {
        Execution execution(4);
        const Documents documents = packed.documents();
        DeviceBuffer<std::uint8_t> bytes;
        ASSERT_TRUE(bytes.allocate(packed.bytes.size() + 32, work.stream).ok());
        ASSERT_TRUE(bytes.upload({documents.bytes, packed.bytes.size()}, work.stream).ok());
        gpu::DeviceSignatures found;
        gpu::PackedSignatures signatures;
        ASSERT_TRUE(found.allocate(documents.size(), longest, work.stream).ok());
        Status status =
            gpu::hash_resident(bytes.data(), documents.extents, longest, work, execution, found);
        ASSERT_TRUE(status.ok()) << status.message();
        status = found.download(signatures, work.stream);
        ASSERT_TRUE(status.ok()) << status.message();
        expect_equal(documents, longest, signatures);
    }

private:
    static void expect_equal(const Documents& documents, std::size_t longest,
                             const gpu::PackedSignatures& signatures) {
        ASSERT_EQ(signatures.size(), documents.size());
        for (std::size_t i = 0; i < documents.size(); ++i)
            ASSERT_EQ(format_ctph(signatures[i]),
                      format_ctph(*ctph_signature(documents[i], longest)))
                << "document " << i << " of " << documents[i].size() << " bytes, " << longest;
    }
};

TEST_F(SignatureHashOnDevice, EqualsTheCpus) {
    RandomStrings random;
    for (const std::size_t longest : {1, 2, 16, 64, 100, 1000, 1024}) {
        Packed packed;
        for (int i = 0; i < rounds(2000); ++i) {
            const std::string_view letters = i % 3 == 0 ? "ab" : "etaoin shrdlu(){};=\n\xff";
            auto text = random.string(random.below(i % 50 == 0 ? 70'000 : 1500), letters);
            if (i % 7 == 0) text.append(random.below(3000), text.empty() ? '\0' : text[0]);
            packed.add(text,
                       std::string_view("\xff\xff\xff\xff\xff\xff\xff").substr(random.below(8)));
        }
        expect_the_cpus(packed, longest);
        expect_the_cpus_when_resident(packed, longest);
    }
}

TEST_F(SignatureHashOnDevice, EqualsTheCpusAtEveryLengthAndAlignment) {
    RandomStrings random;
    const auto text = random.string(40'000, "etaoin shrdlu(){};=\n\xff\x7f");
    Packed packed;
    for (std::size_t size = 0; size < static_cast<std::size_t>(rounds(600)); ++size)
        packed.add(std::string_view(text).substr(random.below(100), size));
    for (std::size_t size = 16'300; size < 16'500; ++size)
        packed.add(std::string_view(text).substr(random.below(100), size));
    for (const std::size_t longest : {1, 7, 100}) {
        expect_the_cpus(packed, longest);
        expect_the_cpus_when_resident(packed, longest);
    }
}

TEST_F(SignatureHashOnDevice, EqualsTheCpusWherePiecesEndEverywhereOrNowhere) {
    Packed packed;
    for (int byte = 0; byte < 256; ++byte) {
        packed.add(std::string(1000 + byte, static_cast<char>(byte)));
        if (byte % 16 == 7) packed.add(std::string(50'000 + byte, static_cast<char>(byte)));
    }
    RandomStrings random;
    for (const std::size_t period : {2, 3, 7, 64}) {
        const auto text = random.string(period, "abcdefghijklmnop\xff");
        std::string repeated;
        while (repeated.size() < 30'000) repeated += text;
        packed.add(repeated);
        // All interesting bytes at the end of many that are not.
        packed.add(std::string(200'000, '\0') + repeated.substr(0, 300));
    }
    for (const std::size_t longest : {1, 16, 100, 1024}) expect_the_cpus(packed, longest);
}

TEST_F(SignatureHashOnDevice, EqualsTheCpusOnLargeDocuments) {
    RandomStrings random;
    Packed packed;
    const auto line = random.string(200'000, "etaoin shrdlu(){};=\n\xff");
    std::string text;
    for (const std::size_t size : {300'000, 5'000'000, 150'000'000}) {
        if (rounds(10) == 1 && size > 1'000'000) break;
        while (text.size() < size) text += line.substr(random.below(100'000));
        packed.add(std::string_view(text).substr(0, size), "?");
        packed.add("between");
    }
    expect_the_cpus(packed, 100);
    expect_the_cpus(packed, 1024);
}

TEST_F(SignatureHashOnDevice, EqualsTheCpusWhenBatchesDiffer) {
    RandomStrings random;
    const auto text = random.string(131'000'000, "etaoin shrdlu(){};=\n\xff");
    Packed packed;
    // A batch of many documents, one of a single one, and one of a few.
    for (int i = 0; i < rounds(70'000); ++i)
        packed.add(std::string_view(text).substr(random.below(100'000'000), 2'000));
    packed.add(text);
    packed.add(std::string_view(text).substr(0, 130'000'000));
    for (int i = 0; i < 9; ++i) packed.add(std::string_view(text).substr(random.below(1000), 1000));
    work.bytes = std::size_t{8} << 30;
    expect_the_cpus(packed, 100);
}

TEST_F(SignatureHashOnDevice, SaysWhatItNeedsAndStops) {
    Packed packed;
    for (int i = 0; i < 100; ++i) packed.add("some text");
    auto ring = gpu::UploadRing::create(2);
    ASSERT_TRUE(ring.ok());
    gpu::PackedSignatures signatures;
    Execution execution(2);
    gpu::DeviceWork little = work;
    little.bytes = 1000;
    EXPECT_EQ(
        gpu::hash_documents(packed.documents(), 100, little, **ring, execution, signatures).code(),
        ErrorCode::out_of_memory);
    execution.request_stop();
    EXPECT_EQ(
        gpu::hash_documents(packed.documents(), 100, work, **ring, execution, signatures).code(),
        ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
