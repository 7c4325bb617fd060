from tests.protocol.world import World, everything_is_copied
def test_smoke():
    for v in (1,2):
        w = World([(2,1,0,2),(1,1)], version=v)
        d = w.open_run("a", 2)
        w.finish(d)
        assert d.result, d.error
        for run, slot in w.planned():
            t = w.attempt(run, slot)
            w.finish(t)
            assert t.result is not None, (t.error, w.trace)
        w.deliver_markers()
        everything_is_copied(w)
        w.end_well()
        print("\n".join(w.trace))
