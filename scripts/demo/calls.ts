import OpenAI, { RateLimitError } from 'openai';
import type { CallLine, CallState } from './board.ts';
import { Board } from './board.ts';

/** Outcome of a round of calls, as seen by the clients. */
export interface DemoRound {
  readonly refused: number;
  readonly completed: number;
  readonly totalMs: number;
}

export interface RoundOptions {
  readonly baseURL: string;
  readonly calls: number;
  /** Number of chunks in a complete response. */
  readonly chunks: number;
  /** Label of a call whose first chunk has not arrived. */
  readonly waitingWord: string;
}

/** Sends streaming calls at once with the official SDK, without retries, and shows them. */
export async function runRound(options: RoundOptions): Promise<DemoRound> {
  const { baseURL, calls, chunks, waitingWord } = options;
  const client = new OpenAI({ apiKey: 'practice-key', baseURL, maxRetries: 0 });
  const lines = Array.from({ length: calls }, (): CallLine => ({
    state: 'waiting',
    chunks: 0,
    waitedMs: null,
    endedMs: null,
  }));
  const board = new Board(lines, waitingWord, chunks);
  const startedAt = performance.now();
  const elapsed = (): number => performance.now() - startedAt;
  board.draw();

  const runCall = async (line: CallLine, index: number): Promise<void> => {
    const enter = (state: CallState): void => {
      line.state = state;
      board.update(index, true);
    };
    board.update(index, true);
    try {
      const stream = await client.chat.completions.create({
        model: 'practice',
        stream: true,
        messages: [{ role: 'user', content: `Say something about the number ${index + 1}.` }],
      });
      for await (const chunk of stream) {
        if (!chunk.choices[0]?.delta.content) continue;
        line.chunks += 1;
        line.waitedMs ??= elapsed();
        if (line.chunks === 1) enter('streaming');
        else board.update(index, false);
      }
      line.endedMs = elapsed();
      // In this SDK, a truncated stream ends like any other. Only its length shows the difference.
      enter(line.chunks === chunks ? 'done' : 'failed');
    } catch (error) {
      line.endedMs = elapsed();
      enter(error instanceof RateLimitError ? '429' : 'failed');
    }
  };
  await Promise.all(lines.map(runCall));

  const count = (state: CallState): number => lines.filter((line) => line.state === state).length;
  return { refused: count('429'), completed: count('done'), totalMs: elapsed() };
}
