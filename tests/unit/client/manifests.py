"""The documentation's manifests that need only the kinds of now, as written there."""

NEX_04 = """\
apiVersion: nodus.dev/v1
kind: Agent
metadata:
  name: hello-agent
spec:
  workingDir: /workspace
  continuity: {mode: Snapshotted, stateDir: /workspace}
  setup: printf 'workspace-ready\\n' > ready.txt
  # Optional, after connecting the repository in this project:
  # source: {git: {repo: your-org/your-repo, ref: main}}
  system: |
    You are a careful assistant. Run shell commands in your sandbox to check your work, and answer in one short paragraph.
  # Nodus's Claude: each prompt is routed to Haiku, Sonnet, Opus or Fable, and billed from your credits.
  model:
    access: Nodus
  perRunMaxCostUSD: "0.50"
"""

NEX_07 = """\
apiVersion: nodus.dev/v1
kind: AgentRun
metadata:
  name: hello-agent-run
spec:
  agent: hello-agent
  # Optional: select inference for this task without editing hello-agent.
  # Omit model to use the saved setup.
  model:
    access: Nodus
  input: "Use the shell to print the Python version, then tell me which one it is."
"""

NEX_18 = """\
apiVersion: nodus.dev/v1
kind: AgentRun
metadata:
  name: shared-subagents
spec:
  agent: hello-agent
  # Run at most two ready subtasks together; omit or use zero for Auto.
  parallelism: 2
  input: |
    Use one parallel_agents batch with these named tasks in our shared sandbox:
    1. primes: Compute the sum of the primes below 30 using Python. Write the number to /tmp/primes.txt.
    2. squares: Compute the sum of the squares from 1 through 5 using Python. Write the number to /tmp/squares.txt.
    3. total: After primes and squares complete, read their files, sum the numbers, and write /tmp/total.txt.
    Declare each task's own output path in writes. total depends_on primes and squares; the first two run concurrently.
    After the batch finishes, read all three files yourself, verify them, call verify_team with a Python assertion
    for both numbers and their total, and reply with exactly: primes=129 squares=55 total=184
"""

NEX_34 = """\
apiVersion: nodus.dev/v1
kind: Agent
metadata:
  name: parallel-agents-worker
spec:
  system: |
    Follow the task's requested answer format; otherwise answer in one short sentence.
  # Nodus's Claude, limited to Haiku so each run stays far below its cap.
  model:
    access: Nodus
    families: [haiku]
    maxTokens: 1024
  perRunMaxCostUSD: "0.10"
"""

NEX_46 = """\
apiVersion: nodus.dev/v1
kind: AgentRun
metadata:
  name: hello-agent-run
spec:
  agent: hello-agent
  keepAlive: true
  deadline: "2030-01-01T00:00:00Z"
  input: "Use the shell to print the Python version, then tell me which one it is."
"""
