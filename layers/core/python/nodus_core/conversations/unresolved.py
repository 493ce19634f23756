"""The steps of a run of which only a person can say what became of them (NOD-090)."""

from nodus_core.journal.journal import Journal
from nodus_core.kernel import ids, projection
from nodus_core.kernel.objects import Run
from nodus_core.kernel.tasks import Task


def unresolved(journal: Journal, run: Run) -> list[projection.Status]:
    """What is shown of each, in the order in which they were lost."""
    tasks = journal.tasks(run.uid, [item.task for item in run.attention])
    return [
        projection.unresolved_entry(name_of(run, task), task, item)
        for item in run.attention
        if (task := tasks.get(item.task)) is not None
    ]


def name_of(run: Run, task: Task) -> str:
    """The name under which people see a step."""
    return ids.step_name(run.turn, task.key, task.tool, task.number)
