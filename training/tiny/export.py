def export(run, folder, threads):
    pass
