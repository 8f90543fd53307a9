// What goes on after the answer to the call that started it, until it is ended by a control or cancelled.

/** Paths that start a run, and whether only a body with `background: true` does. */
const STARTS = /\/(?:responses|threads\/(?:[^/]+\/)?runs|submit_tool_outputs|videos|async-invoke)$/;
const ASKS = /\/(?:responses|videos|async-invoke|runs)\/([^/]+?)(\/cancel)?$/;

export interface StrictRunsTally {
  inFlight: number;
  /** The most runs that went on at once. */
  peak: number;
  total: number;
  /** Calls that would have started one above the limit. */
  rejected: number;
}

/** The runs of a scope. */
export class StrictRuns {
  readonly tally: StrictRunsTally = { inFlight: 0, peak: 0, total: 0, rejected: 0 };
  readonly #states = new Map<string, string>();
  readonly #onEnd = new Map<string, (() => void)[]>();

  /** The ids of those that go on, the oldest first. */
  get going(): readonly string[] {
    return [...this.#states].flatMap(([id, status]) => (isOver(status) ? [] : [id]));
  }

  /** Answers a call that starts a run or asks for one; null: it does neither. */
  answer(
    {
      method,
      path,
      body,
    }: { readonly method: string; readonly path: string; readonly body: string },
    limit: number | null,
  ): { readonly status: number; readonly body: unknown } | null {
    if (method === 'POST' && STARTS.test(path)) {
      const asksBackground = isBackground(body);
      if (path.endsWith('/responses') && !asksBackground) return null;
      if (/"stream"\s*:\s*true/.test(body) && !asksBackground) return null;
      return this.#start(path, limit);
    }
    const [, id, cancel] = ASKS.exec(path) ?? [];
    if (id === undefined) return null;
    const known = decodeURIComponent(id);
    const status = this.#states.get(known);
    if (status === undefined) return { status: 404, body: { error: { message: 'no such run' } } };
    if (cancel !== undefined) this.end(known, 'cancelled');
    return { status: 200, body: said(path, known, this.#states.get(known) ?? status) };
  }

  /** Ends a run, or says that it waits for its caller. */
  end(id: string, status: string): void {
    const before = this.#states.get(id);
    if (before === undefined) throw new Error(`no run ${id}`);
    if (!isOver(before) && isOver(status)) this.tally.inFlight -= 1;
    this.#states.set(id, status);
    if (!isOver(status)) return;
    for (const report of this.#onEnd.get(id) ?? []) report();
    this.#onEnd.delete(id);
  }

  /** Resolves with the run as it is told of once it is over, or was. */
  async ended(id: string): Promise<object> {
    while (!isOver(this.#states.get(id) ?? '')) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onEnd.set(id, [...(this.#onEnd.get(id) ?? []), resolve]);
      await promise;
    }
    return said('', id, this.#states.get(id) ?? '');
  }

  #start(path: string, limit: number | null): { status: number; body: unknown } {
    const { tally } = this;
    if (limit !== null && tally.inFlight >= limit) {
      tally.rejected += 1;
      const error = { message: 'Too many runs.', type: 'requests', code: 'rate_limit_exceeded' };
      return { status: 429, body: { error } };
    }
    const [, again] = /\/runs\/([^/]+)\/submit_tool_outputs$/.exec(path) ?? [];
    tally.total += 1;
    tally.inFlight += 1;
    tally.peak = Math.max(tally.peak, tally.inFlight);
    const isArn = path.endsWith('/async-invoke');
    const id =
      again ??
      (isArn ? `arn:aws:bedrock:us-east-1:1:async-invoke/${tally.total}` : `run_${tally.total}`);
    this.#states.set(id, 'queued');
    return { status: 200, body: isArn ? { invocationArn: id } : said(path, id, 'queued') };
  }
}

/** Reads `background` as the most tolerant servers do: in any case, in UTF-16 too. */
function isBackground(body: string): boolean {
  try {
    const asked = JSON.parse(body.replaceAll(/[\0\ufeff\ufffd]/g, '')) as object;
    return Object.entries(asked).some(
      ([name, value]) => name.toLowerCase() === 'background' && value === true,
    );
  } catch {
    return /"background"\s*:\s*true/.test(body);
  }
}

function isOver(status: string): boolean {
  return !['queued', 'in_progress', 'InProgress', 'cancelling'].includes(status);
}

function said(path: string, id: string, status: string): object {
  if (path.includes('/async-invoke')) return { invocationArn: id, status };
  return {
    id,
    object: 'response',
    created_at: 1_790_000_000,
    status,
    background: true,
    output: [],
  };
}
