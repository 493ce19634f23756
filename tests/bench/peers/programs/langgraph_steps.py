"""LangGraph on SQLite (write-ahead log, full sync), a checkpoint for each step. Run by `peers/__init__.py`."""

import sqlite3
import sys
from operator import add
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from workload import main


class State(TypedDict):
    done: Annotated[int, add]
    wanted: int


class Engine:
    """The engine as `workload.main` drives it.

    Args:
        folder: where it keeps its database.
        effect: called within each step with the step's number, from 0.
    """

    def __init__(self, folder, effect):
        self._connection = sqlite3.connect(folder / "langgraph.sqlite", check_same_thread=False)
        graph = StateGraph(State)
        graph.add_node("step", lambda state: effect(state["done"]) or {"done": 1})
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda state: "step" if state["done"] < state["wanted"] else END)
        self._app = graph.compile(checkpointer=SqliteSaver(self._connection))

    def run(self, name, steps):
        """Works on the run of that name until its end, from wherever it stands."""
        config = {"configurable": {"thread_id": name}, "recursion_limit": steps + 10}
        known = self._app.get_state(config).next
        self._app.invoke(None if known else {"done": 0, "wanted": steps}, config, durability="sync")

    def close(self):
        self._connection.close()


if __name__ == "__main__":
    main(Engine, Path(sys.argv[1]), sys.argv[2:])
