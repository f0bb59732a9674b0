"""Floating point operations counted by hand: a product of p x q and q x r is 2 p q r of them.

One prompt's prediction, forward; reverse mode costs twice as much again. Norms, softmax, gelu and
sums of arrays are not counted.
"""

BACKWARD_TOO = 3  # forward, and one product for each of the two factors' derivatives


def linear_attention(n: int, d: int, layers: int) -> int:
    """One head a layer, in the form that needs the fewest at these sizes."""
    return min(form(n, d, layers) for form in (tokens_form, moments_form, scores_form))


def tokens_form(n: int, d: int, layers: int) -> int:
    """Each layer's moment EᵀE, its map w_pv S w_kq, and the tokens through it."""
    e = d + 1
    layer = 2 * n * e**2 + 4 * e**3 + 2 * (n + 1) * e**2
    return (layers - 1) * layer + _query_reads(n, e)


def moments_form(n: int, d: int, layers: int) -> int:
    """S_0 once; then maps alone: W + w_pv (W S_0 Wᵀ) w_kq W, the first from W = I."""
    e = d + 1
    if layers == 1:
        return 2 * n * e**2 + 4 * e**2 + 2 * e
    maps = 4 * e**3 + (layers - 2) * 10 * e**3
    return 2 * n * e**2 + maps + 10 * e**2 + 2 * e


def scores_form(n: int, d: int, layers: int) -> int:
    """The scores [n + 1, n] of each layer, as papers write it."""
    e = d + 1
    layer = 4 * (n + 1) * e**2 + 4 * (n + 1) * n * e
    return (layers - 1) * layer + _query_reads(n, e)


def _query_reads(n: int, e: int) -> int:
    """The last layer moves the query alone, and of that the label slot."""
    return 2 * e**2 + 4 * n * e + 2 * e


def transformer(
    tokens: int, read: int, token_width: int, layers: int, width: int, mlp_width: int
) -> int:
    """Softmax attention as wide as the stream; of the last layer only the tokens that are read."""
    whole = _layer(tokens, tokens, width, mlp_width)
    read_in_and_out = 2 * tokens * token_width * width + 2 * read * width
    return (layers - 1) * whole + _layer(tokens, read, width, mlp_width) + read_in_and_out


def _layer(tokens: int, read: int, width: int, mlp_width: int) -> int:
    projections = 4 * tokens * width**2 + 4 * read * width**2  # keys, values; queries, outs
    return projections + 4 * read * tokens * width + 4 * read * width * mlp_width


def flow_by_the_moment(n: int, d: int, layers: int) -> int:
    """S_0, and (G + Gᵀ) e_i for the slope G of each layer; the slopes themselves are small."""
    e = d + 1
    return 2 * n * e**2 * (1 + layers)


def delta(tokens: int, width: int, key: int, chunk: int = 32) -> int:
    """A layer of the delta rule by chunks: four projections and the way back, then of every token
    the products with the others of its chunk (keys, queries, the triangular system) and the state.
    """
    return tokens * (10 * width * key + 8 * chunk * key + 6 * key**2)


def matching(m: int, p: int, size: int) -> int:
    """Products of the running mean with all rows, once a choice, and the chosen's Gram rows."""
    return 4 * m * p * size
