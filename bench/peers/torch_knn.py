"""Nearest neighbors as PyTorch, CuPy and scikit-learn users compute them, on one GPU.

usage: torch_knn.py [small] [few] [large] [cosine] [lof]

Rows are independent normal numbers in float32, as in bench/gpu_knn_bench.cu. Times are between CUDA
events, vectors resident, the least of several passes, at the best of a few sizes of a chunk. TF32's
answers are held against float64's for some queries: the number of rows whose set of neighbors is
another one.
"""

import sys
import time

import torch


def timed(call, passes=5):
    """Least milliseconds on the device."""
    call()
    best = float("inf")
    for _ in range(passes):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end))
    return best


def rows(count, dimensions, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(count, dimensions, device="cuda", generator=generator)


def euclidean_topk(queries, items, k):
    """Ascending by squared distance, less the query's norm."""
    scores = torch.addmm((items * items).sum(1), queries, items.T, alpha=-2)
    return scores.topk(k, largest=False)


def cosine_topk(queries, items, k):
    return (queries @ items.T).topk(k)


def chunked(topk, queries, items, k, chunk):
    for part in queries.split(chunk):
        topk(part, items, k)


def set_precision(tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32


def wrong_rows(topk, queries, items, k):
    """Of all queries, those whose set differs from float64's."""
    wrong = 0
    doubles = items.double()
    for part in queries.split(250):
        found = topk(part, items, k).indices.sort(1).values
        exact = topk(part.double(), doubles, k).indices.sort(1).values
        wrong += int((found != exact).any(1).sum())
    return wrong


def measure(name, topk, items_count, queries_count, dimensions, k, chunks, checked, passes):
    items, queries = rows(items_count, dimensions, 1), rows(queries_count, dimensions, 2)
    if topk is cosine_topk:
        items, queries = (torch.nn.functional.normalize(x) for x in (items, queries))
    for tf32 in (False, True):
        set_precision(tf32)
        best = min(
            timed(lambda c=c: chunked(topk, queries, items, k, c), passes) for c in chunks
        )
        product = timed(lambda: [part @ items.T for part in queries.split(chunks[0])], passes)
        wrong = wrong_rows(topk, queries[:checked], items, k)
        print(
            f"torch {name} {items_count} x {queries_count} x {dimensions}, k = {k}, "
            f"{'TF32' if tf32 else 'float32'}: {best:.3f} ms, the product alone {product:.3f} ms; "
            f"{wrong} of {checked} rows wrong",
            flush=True,
        )


def measure_cupy():
    import cupy

    items = cupy.from_dlpack(rows(20000, 41, 1))
    queries = cupy.from_dlpack(rows(5000, 41, 2))

    def call():
        scores = (items * items).sum(1) - 2 * (queries @ items.T)
        near = cupy.argpartition(scores, 100, axis=1)[:, :100]
        order = cupy.take_along_axis(scores, near, 1).argsort(1)
        return cupy.take_along_axis(near, order, 1)

    best = timed_on_host(cupy, call)
    print(f"cupy 20000 x 5000 x 41, k = 100: {best * 1e3:.3f} ms", flush=True)


def measure_few():
    """Few queries among a million items, by both libraries."""
    import cupy

    for k in (10, 100):
        for count in (1, 16, 64, 1000):
            measure("cosine", cosine_topk, 1000000, count, 768, k, (count,), min(count, 16), 5)
    items = cupy.from_dlpack(rows(1000000, 768, 1))
    items /= cupy.linalg.norm(items, axis=1, keepdims=True)
    for count in (1, 16, 64):
        queries = cupy.from_dlpack(rows(count, 768, 2))

        def call():
            scores = queries @ items.T
            near = cupy.argpartition(-scores, 100, axis=1)[:, :100]
            order = (-cupy.take_along_axis(scores, near, 1)).argsort(1)
            return cupy.take_along_axis(near, order, 1)

        best = timed_on_host(cupy, call)
        print(f"cupy cosine 1000000 x {count} x 768, k = 100: {best * 1e3:.3f} ms", flush=True)


def timed_on_host(cupy, call, passes=3):
    """Least seconds until the device has ended."""
    call()
    cupy.cuda.Device().synchronize()
    best = float("inf")
    for _ in range(passes):
        begin = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def measure_cosine():
    items, query = rows(100000, 1000, 1), rows(1, 1000, 2)
    similarity = timed(lambda: torch.nn.functional.cosine_similarity(query, items), 10)
    product = timed(lambda: torch.mv(items, query[0]), 10)
    copy = torch.empty_like(items)
    copied = timed(lambda: copy.copy_(items), 10)
    dots = timed(lambda: [torch.dot(query[0], item) for item in items], 2)
    print(
        f"torch cosine 1 x 100000 x 1000: cosine_similarity {similarity:.3f} ms, mv "
        f"{product:.3f} ms, torch.dot for each row {dots:.0f} ms, cuBLAS's for each row "
        f"{cublas_dots(query, items):.0f} ms, copy {2 * items.nbytes / copied * 1e-9:.2f} TB/s",
        flush=True,
    )


def cublas_dots(query, items):
    """Least milliseconds of cublasSdot for each row, results left on the device."""
    import cupy
    from cupy_backends.cuda.libs import cublas

    answer = torch.empty(len(items), device="cuda")
    handle = cupy.cuda.device.get_cublas_handle()
    cublas.setStream(handle, torch.cuda.current_stream().cuda_stream)
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_DEVICE)
    width, first, rows, out = items.shape[1], query.data_ptr(), items.data_ptr(), answer.data_ptr()

    def call():
        for i in range(len(items)):
            cublas.sdot(handle, width, first, 1, rows + 4 * width * i, 1, out + 4 * i)

    best = timed(call, 2)
    if not torch.allclose(answer, torch.mv(items, query[0]), atol=1e-2):
        raise SystemExit("cublasSdot has other results than torch.mv")
    return best


def measure_lof():
    from sklearn.neighbors import LocalOutlierFactor

    items = rows(100000, 16, 1).cpu().numpy()
    begin = time.perf_counter()
    LocalOutlierFactor(n_neighbors=20, n_jobs=-1).fit(items)
    print(f"scikit-learn LOF 100000 x 16, k = 20: {time.perf_counter() - begin:.2f} s", flush=True)


def main():
    wanted = sys.argv[1:] or ["small", "few", "large", "cosine", "lof"]
    if "small" in wanted:
        for k in (20, 100):
            measure("euclidean", euclidean_topk, 20000, 5000, 41, k, (1000, 5000), 5000, 5)
        measure_cupy()
    if "few" in wanted:
        measure_few()
    if "large" in wanted:
        measure("cosine", cosine_topk, 1000000, 10000, 768, 100, (1000, 2500), 500, 2)
    if "cosine" in wanted:
        measure_cosine()
    if "lof" in wanted:
        measure_lof()


if __name__ == "__main__":
    main()
