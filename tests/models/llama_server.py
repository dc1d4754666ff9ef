"""llama.cpp's own server: ``python llama_server.py WEIGHTS PORT KEY CONTEXT [endless]``. Says its address, then serves.
An endless one never ends an answer by itself, only at the limit on its tokens."""

import sys
import threading

import xllamacpp

if __name__ == "__main__":
    weights, port, key, context = sys.argv[1:5]
    told = xllamacpp.CommonParams()
    told.model.path = weights
    told.hostnames = ["127.0.0.1"]
    told.port = int(port)
    told.api_keys = [key]
    told.n_ctx = int(context)
    told.n_parallel = 1
    told.sampling.ignore_eos = sys.argv[5:] == ["endless"]
    # Two threads spin on each other where the machine is busy.
    told.cpuparams.n_threads = told.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(told)
    print(server.listening_address, flush=True)
    threading.Event().wait()
