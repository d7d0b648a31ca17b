"""Makes the cases of this folder with the reference models of Harmony (harmony_check.py and value_model.py).

    python3 emit.py FOLDER_OF_THE_MODELS

harmony_inter.json   decisions with edges to the previous block (`corrected`)
harmony_intra.json   decisions without them (`intra`)
value_model.json     histories of small programs with receipts, final states and who ran again (lag 1, strict)

Left out of the value model's are histories with scans in which
- a program writes one row several times (the model does not consider that only some of the commands may match), or
- an assignment of a constant matched nothing in the simulation (the model then takes the constant for unknown).
"""

import json
import pathlib
import random
import sys

sys.path.insert(0, sys.argv[1])
import harmony_check
import value_model

here = pathlib.Path(__file__).parent


def write(name, cases):
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (here / name).write_text("[\n" + lines + "\n]\n")


def decisions(variant, count):
    rng = random.Random(20261120)
    for _ in range(count):
        txns = harmony_check.history(rng)
        committed, _, chain = harmony_check.decide(txns, variant)
        yield {
            "transactions": [
                {"tid": t, "block": b, "reads": sorted(r), "updates": sorted(w)} for t, (b, r, w) in txns.items()
            ],
            "committed": sorted(committed),
            "order": {k: v for k, v in chain.items()},
        }


def writes(op):
    if op is None or op[0] in "RSX":
        return []
    if op[0] == "F":
        return writes(op[1]) + writes(op[2])
    return [op[1]]


def models_agree(programs):
    scanned = any(op[0] == "S" for program in programs for op in program)
    repeated = any(
        len(rows) != len(set(rows)) for rows in ([k for op in program for k in writes(op)] for program in programs)
    )
    return not (scanned and repeated)


def table(state):
    return sorted([k, r["a"], r["b"]] for k, r in state.items())


def histories(count):
    features = ("S", "V", "ID", "use", "G", "F", "X")
    configuration = dict(value_model.GOOD, lag=1, mode="strict")
    simulate = value_model.simulate
    seed = 0
    while count:
        seed += 1
        rng = random.Random(seed)
        rows = range(3)
        init = {k: {"a": rng.randint(0, 4), "b": rng.randint(0, 4)} for k in rows if rng.random() < 0.7}
        blocks = [[value_model.rand_prog(rng, 3, features) for _ in range(5)] for _ in range(2)]
        programs = [program for block in blocks for program in block]
        if not models_agree(programs):
            continue
        runs, constants = [], []

        def record(prog, snap, cfg):
            runs.append(id(prog))
            effects = simulate(prog, snap, cfg)
            constants.extend(op for op, _, matched in effects.steps if op[0] == "U" and op[3][0] == "set" and not matched)
            return effects

        value_model.simulate = record
        receipts, final, _ = value_model.run(blocks, init, configuration)
        value_model.simulate = simulate
        if receipts is None or (constants and any(op[0] == "S" for program in programs for op in program)):
            continue
        found = {id(program): (trace, error) for _, program, trace, error in receipts}
        count -= 1
        yield {
            "initial": table(init),
            "blocks": [
                [
                    {
                        "program": program,
                        "executions": runs.count(id(program)),
                        "trace": found[id(program)][0],
                        "error": found[id(program)][1],
                    }
                    for program in block
                ]
                for block in blocks
            ],
            "final": table(final),
        }


write("harmony_inter.json", decisions("corrected", 400))
write("harmony_intra.json", decisions("intra", 400))
write("value_model.json", histories(600))
