"""The reference model `schemas.py` with one rule changed: a part of a transaction of several schemas may overtake such parts that wait,
if it cannot meet them whatever they come to, nor any part of one schema that waits before it.

What a part may meet is told from its program alone, whatever it will find: its footprint. So one busy row does not keep everybody
else waiting. There is no deadlock, as with the rule of the model: a part of several schemas waits for earlier transactions only. It
may wait behind a part of one schema, which waits for the lock of a part of several that came later and was prepared first; but that
one did not overtake the first, or it could not meet the second, so it is earlier than the first.

    PYTHONPATH=…/oracle/shards python3 overtaking.py --cases 100000   # as `schemas.py`, which says what is checked
    PYTHONPATH=…/oracle/shards python3 overtaking.py --emit 300
"""

import schemas


class Footprint:
    """Everything that a program can touch."""

    def __init__(self, program):
        self.reads, self.writes, self.scan = set(), set(), False
        for op, *args in program:
            if op == "sum":
                self.scan = True
            elif op == "if":
                self.reads.add(args[0])
                self.writes.add(args[1])
            else:
                self.reads.add(args[0])
                if op in ("add", "delete"):
                    self.writes.add(args[0])

    def may_be_met_by(self, touched):
        writes = set(touched.writes)
        return bool(writes & (self.reads | self.writes) or touched.reads & self.writes
                    or touched.scan and self.writes or self.scan and writes)


class Holder(schemas.Holder):
    def attempt(self, tx, height):
        rules, crossing = self.case.rules, len(tx.parts) > 1
        touched = schemas.execute(self.program(tx), self.rows)
        blocked = any(touched.meets(lock, rules["locks"]) for lock in self.prepared.values())
        if rules["fair"] == "yes":
            blocked = blocked or any(w is not None and num < tx.num and (touched.meets(w, rules["locks"]) or w.meets(touched, rules["locks"]))
                                     for num, w in self.waiting.items())
        if crossing and rules["fifo"] == "yes":
            ahead = [num for num in self.waiting if num < tx.num]
            may_meet = {num: Footprint(self.program(self.case.txs[num])).may_be_met_by(touched) for num in ahead}
            several = [num for num in ahead if len(self.case.txs[num].parts) > 1]
            blocked = blocked or any(may_meet[num] for num in (ahead if several else []))
        if blocked:
            self.waiting[tx.num] = touched
            return
        self.waiting.pop(tx.num, None)
        if crossing:
            if touched.ok:
                self.prepared[tx.num] = touched
            self.case.vote(self, tx, touched.ok)
            return
        self.sequence += 1
        if touched.ok:
            self.write(touched)
        self.results[tx.num] = ("committed" if touched.ok else "failed", tuple(touched.values), (height, 1, self.sequence))


schemas.Holder = Holder

if __name__ == "__main__":
    schemas.main()
