import { inject } from 'vitest';
import '../../support/provided-context.ts';

// The strict upstream is a Node program, whose types do not belong in a program for workerd: what is
// read of its answers is written out here. It refuses settings that it does not know.

type Setting = string | number | boolean | null | { readonly [name: string]: Setting };

/** How calls are answered: fields of `StrictSettings`. */
export type Settings = Readonly<Record<string, Setting>>;

interface SupportStrictArrival {
  readonly label: string | null;
  readonly path: string;
  readonly state: 'open' | 'done' | 'refused' | 'aborted' | 'broken';
  /** Epoch milliseconds, with fractions. */
  readonly at: number;
  readonly endedAt: number | null;
  readonly model: string | null;
  /** The key that it came with. */
  readonly key: string | null;
  /** Tokens of the prompt, and of the answer as far as it went out. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Reason for which the call was refused. */
  readonly refusedAs: string | null;
}

/** Counts of the upstream. */
interface Stats {
  readonly inFlight: number;
  readonly peak: number;
  readonly total: number;
  readonly completed: number;
  readonly rejected429: number;
  /** Refused calls by what they were refused for, whichever status they got. */
  readonly refused: Readonly<Record<string, number>>;
  readonly aborted: number;
  readonly uncounted: number;
  /** The same counts of each account whose keys the upstream was told. */
  readonly accounts: Readonly<Record<string, { readonly peak: number; readonly total: number }>>;
  /** By the key that calls came with. */
  readonly keys: Readonly<
    Record<string, Pick<Stats, 'inFlight' | 'peak' | 'total' | 'rejected429'>>
  >;
  /** Calls that are a whole WebSocket, and calls that are a turn of one; counted above too. */
  readonly sessions: SocketTally;
  readonly turns: SocketTally;
  /** WebSockets that were accepted, in the order of their upgrades. */
  readonly sockets: readonly StrictSeenSocket[];
  /** Runs that go on after the answers of their calls, and their ids. */
  readonly runs: {
    readonly inFlight: number;
    readonly peak: number;
    readonly total: number;
    readonly rejected: number;
    readonly going: readonly string[];
  };
  /** In the order in which the calls arrived. */
  readonly arrivals: readonly SupportStrictArrival[];
}

type SocketTally = Pick<
  Stats,
  'inFlight' | 'peak' | 'total' | 'completed' | 'rejected429' | 'aborted'
>;

/** One WebSocket, as the upstream saw it. */
interface StrictSeenSocket {
  readonly index: number;
  readonly kind: 'realtime' | 'responses' | 'live' | 'echo';
  readonly path: string;
  readonly query: string;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The subprotocol that it speaks; empty: none. */
  readonly protocol: string;
  readonly state: 'open' | 'closed';
  readonly messageCount: number;
  readonly messageBytes: number;
  /** Messages that its client sent, where `keepsRequests` is set. */
  readonly messages: readonly ({ readonly text: string } | { readonly base64: string })[];
  readonly sentBytes: number;
  readonly pings: number;
  readonly pongs: number;
  /** 1005: a close without a code. 1006: none came. */
  readonly closeCode: number | null;
  readonly closeReason: string | null;
  readonly closedBy: 'client' | 'upstream' | 'cut' | null;
  readonly error: string | null;
}

/** Something that the upstream does to WebSockets that are open: to all, or to the one of an index. */
type StrictAct = (
  | { readonly do: 'close'; readonly code?: number; readonly reason?: string }
  | { readonly do: 'cut' | 'ping' | 'stall' | 'read' }
  | { readonly do: 'send'; readonly text: string }
  | { readonly do: 'send-binary' | 'send-raw'; readonly base64: string }
) & { readonly index?: number };

/** One isolated scope of the strict upstream, controlled over HTTP because it runs in Node. */
export interface Strict {
  readonly url: string;
  stats(): Promise<Stats>;
  configure(settings: Settings): Promise<void>;
  /** Has the next calls go wrong: refused as a kind, or broken by a fault. */
  failNext(failure: string, calls?: number): Promise<void>;
  /** Ends a run, or all that go on. */
  endRun(status: string, id?: string): Promise<void>;
  /** Lets streams go on that went silent for ever, or are to, if their calls are here. */
  resume(): Promise<void>;
  act(act: StrictAct): Promise<void>;
}

/** A scope of its own for a test. */
export async function strictScope(name: string, settings: Settings = {}): Promise<Strict> {
  const url = `${inject('strictUpstreamUrl')}/scope/${name}-${crypto.randomUUID().slice(0, 8)}`;
  const control = async (verb: string, body?: unknown): Promise<Stats> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${url}/__strict/${verb}`, init);
    if (!response.ok) throw new Error(`${verb}: ${await response.text()}`);
    return response.json();
  };
  const strict: Strict = {
    url,
    stats: () => control('stats'),
    configure: async (partial) => void (await control('configure', partial)),
    failNext: async (failure, calls = 1) => void (await control('fail-next', { calls, failure })),
    endRun: async (status, id) => void (await control('end-run', { status, ...(id && { id }) })),
    resume: async () => void (await control('resume')),
    act: async (act) => void (await control('act', act)),
  };
  await strict.configure(settings);
  return strict;
}
