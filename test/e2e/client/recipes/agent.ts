import type { Headgate } from 'headgate/client';

/** A model's turn: the agent has finished, or a tool is to be run. */
interface AgentStep {
  readonly text: string;
  readonly tool: (() => Promise<string>) | null;
}

type Generate = (messages: readonly string[], signal: AbortSignal) => Promise<AgentStep>;

export async function runAgent(gate: Headgate, generate: Generate, task: string) {
  const run = { agent: crypto.randomUUID(), agentStartedAt: new Date() };
  const messages = [task];
  for (;;) {
    const step = await gate.withLease({ group: 'glm', ...run }, (lease) =>
      generate(messages, lease.signal),
    );
    if (step.tool === null) return step.text;
    // No slot is held while a tool runs. Afterwards, the oldest run goes first again.
    messages.push(step.text, await step.tool());
  }
}
