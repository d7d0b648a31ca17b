def write(results, program):
    pass
