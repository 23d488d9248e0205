"""Reads event files by TensorBoard's own reader and prints every number: run, tag, step, number."""
import os
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder = sys.argv[1]
for run in sorted(os.listdir(folder)):
    events = EventAccumulator(os.path.join(folder, run))
    events.Reload()
    for tag in sorted(events.Tags()["scalars"]):
        for scalar in events.Scalars(tag):
            print(run, tag, scalar.step, round(scalar.value, 4), round(scalar.wall_time, 1))
