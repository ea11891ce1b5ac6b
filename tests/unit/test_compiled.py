import numba

from epistemic_calibration.methods._compiled import compiled


def test_code_is_compiled_where_it_cannot_be_kept(monkeypatch):
    njit = numba.njit

    def without_cache(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*args, **options)

    monkeypatch.setattr(numba, "njit", without_cache)
    assert compiled(lambda x: x + 1)(2) == 3
