import { mediaType } from '../../runtime/header-value.ts';
import { runsOf } from '../../env.ts';
import { pause, within } from '../../runtime/async.ts';
import { logEvent } from '../../runtime/log.ts';
import {
  mayStartRunAt,
  RunDocument,
  RunEvents,
  PackedRun,
  type RunReader,
  type ReportedRun,
} from '../../upstream/operation/runs.ts';
import { isPlain, packingsOf } from '../../upstream/body/packing.ts';
import { peekAnswer } from '../../upstream/transfer/fetch-answer.ts';
import { pipeChunks } from '../../upstream/transfer/watched-pipe.ts';
import type { Admission } from '../acquire/admission.ts';
import type { Located } from '../request/locate.ts';
import type { Candidate } from '../plan/plan.ts';
import type { AuthenticatedCall } from '../request/call.ts';
import { isUnified, unifiedShape } from '../request/choose-path.ts';
import { isFoundAnyway, noteMade } from '../request/home-upstream.ts';

/** Runs, which continue after their answer, and the ids of the objects that an answer names. */

/** How many bytes of an answer are searched. The state of a run is near its beginning. */
export const RUN_BYTES_MAX = 262_144;

/** Timeout of the runs' object for one attempt, and the pauses before each attempt. */
const HOLD_LOST_MS = 6_000;
const PAUSES_MS = [0, 250, 1_000, 3_000];

export function mayStartRun({ call, located, rules }: Candidate): boolean {
  if (call.method === 'HEAD' || rules.hold.maxRunMs === 0) return false;
  return mayStartRunAt(located.path);
}

/** An answer that was searched for a run, and whether that run now holds the leases of the call. */
export interface CheckedAnswer {
  readonly answer: Response;
  readonly isHeld: boolean;
  /** Reads the run's state from the answer in transit. Absent if the answer is not read. */
  readonly events?: RunReader;
  /** The answer belongs to the call's own run, which holds the leases if the answer ends before the run. */
  readonly isOwn?: boolean;
}

/**
 * Checks whether an answer reports a new run, and transfers the leases of its call to that run. The caller receives the
 * answer afterwards, so no report of the run's end can precede that.
 */
export async function holdRun(
  candidate: Candidate,
  admission: Admission,
  answer: Response,
  isTakenWhole: boolean,
  note: NoteMade | null,
): Promise<CheckedAnswer> {
  if (isRunStream(answer)) return reading(answer, noting(new RunEvents(), note), candidate.located);
  if (!answer.ok || !mayBeJson(answer)) return { answer, isHeld: false };
  if (isTakenWhole && isPlain(answer.headers.get('content-encoding'))) {
    return { answer, isHeld: false, events: noting(new RunDocument(), note), isOwn: true };
  }
  const peeked = await peekAnswer(answer, RUN_BYTES_MAX, candidate.call.after);
  const { reportedRun, isWhole, made } = readBeginning(peeked.text);
  const looked = { answer: peeked.answer, isHeld: false };
  const noted = made === null ? undefined : note?.(made);
  if (reportedRun?.state === 'goes on') {
    await noted;
    return {
      ...looked,
      isHeld: await keepForRun(candidate, admission, reportedRun.id, answer.status),
    };
  }
  // It was too long or too slow to be read first.
  const isOpen = reportedRun === null && !isWhole;
  const open = (): CheckedAnswer =>
    reading(peeked.answer, noting(new RunDocument(), note), candidate.located);
  return isOpen ? open() : looked;
}

/** Reads the answer to the call's own run in transit, if that is possible. */
function reading(answer: Response, reader: RunReader, located: Located): CheckedAnswer {
  const events = readerOf(answer, reader, located);
  return events === null
    ? { answer, isHeld: false }
    : { answer, isHeld: false, events, isOwn: true };
}

/** Transfers the leases of a call to its run. Returns false if the call still holds them. */
export async function keepForRun(
  { call, located, rules }: Candidate,
  admission: Admission,
  run: string,
  status: number,
): Promise<boolean> {
  const { maxRunMs, maxHoldMs } = rules.hold;
  const forMs = Math.min(maxRunMs, maxHoldMs);
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await pause(pauseMs, call.after);
    // Objects may be reset meanwhile, so the leases are described again for each attempt.
    const result = await tryToHold({ call, located }, admission, { run, forMs, status });
    if (result !== 'late') return result === 'held';
  }
  logEvent('run_not_held', { upstream: located.upstream.id, run });
  return false;
}

async function tryToHold(
  { call, located }: Pick<Candidate, 'call' | 'located'>,
  admission: Admission,
  { run, forMs, status }: { readonly run: string; readonly forMs: number; readonly status: number },
): Promise<'held' | 'late' | 'no'> {
  const leases = await admission.forRun(status);
  if (leases === null) return 'no';
  const { jurisdiction = null } = leases.find((one) => one.jurisdiction !== null) ?? {};
  const runs = runsOf(call.env, located.upstream.id, jurisdiction);
  if (runs === null) return 'no';
  try {
    return await within(HOLD_LOST_MS, runs.hold({ run, forMs, leases }), call.after);
  } catch {
    return 'late';
  }
}

const encoder = new TextEncoder();

export function readBeginning(text: string): RunDocument {
  const document = new RunDocument();
  document.push(encoder.encode(text));
  return document;
}

/** Whether an answer may be JSON, because some servers do not declare it. A stream of events is not. */
function mayBeJson({ headers }: Response): boolean {
  const type = mediaType(headers.get('content-type'));
  return type !== 'text/event-stream' && !/^(?:audio|image|video)\//.test(type);
}

export function isJson({ headers }: Response): boolean {
  return /[/+]json$/.test(mediaType(headers.get('content-type')));
}

/** Types of streams in which each event is a line of JSON. */
const IN_LINES: ReadonlySet<string> = new Set([
  'text/event-stream',
  'application/x-ndjson',
  'application/jsonl',
]);

export function isRunStream({ ok, body, headers }: Response): boolean {
  return ok && body !== null && IN_LINES.has(mediaType(headers.get('content-type')));
}

/**
 * Makes `reader` read an answer that may be compressed, although an uncompressed one was requested. null if the
 * compression cannot be undone here. A run in such an answer holds no slot, which is logged.
 */
export function readerOf<R extends RunReader>(
  { headers }: Response,
  reader: R,
  { upstream: { id } }: Pick<Located, 'upstream'>,
): RunReader | null {
  const encoding = headers.get('content-encoding');
  const packings = packingsOf(encoding);
  if (packings !== null) return packings.length === 0 ? reader : new PackedRun(reader, packings);
  logEvent('run_unreadable', { upstream: id, encoding: encoding?.slice(0, 40) ?? null });
  return null;
}

/** Passes the events of an answer to a reader in transit. */
export function readThrough(
  { body, status, statusText, headers }: Response,
  events: Pick<RunReader, 'push'>,
  ctx: AuthenticatedCall['ctx'],
): Response {
  const { readable, writable } = new IdentityTransformStream();
  const passing = pipeChunks(body ?? new ReadableStream(), writable, {
    // A caller that leaves aborts what is read.
    signal: new AbortController().signal,
    idle: null,
    stalled: null,
    pass(chunk) {
      events.push(chunk);
      return chunk;
    },
    last: () => new Uint8Array(),
  });
  ctx.waitUntil(passing.catch(() => {}));
  return new Response(readable, { status, statusText, headers, encodeBody: 'manual' });
}

/** Records the ids of objects that the answer of an upstream names. */
export type NoteMade = (ids: readonly string[]) => Promise<void>;

/** Operations with a slot whose answers name a stored object. */
const STORES: ReadonlySet<string> = new Set(['responses', 'videos', 'runs', 'conversations']);

/** Operations without a slot whose answers name none. */
const STORES_NONE: ReadonlySet<string> = new Set(['count_tokens', 'health', 'models']);

/**
 * How the ids in the answer to a call are recorded. null if they are not, because the call names its upstream in its
 * path, creates nothing, or its objects are found at its upstream anyway.
 */
export function noterOf(
  call: AuthenticatedCall,
  { upstream, operation }: Located,
): NoteMade | null {
  const { method, url, env, ctx } = call;
  const { name, limited, socket } = operation;
  const isPost = method === 'POST' || socket === 'turns';
  if (env.RUNS === undefined || !isUnified(url) || !isPost) return null;
  if (limited ? !STORES.has(name) : STORES_NONE.has(name) || /\/cancel\/?$/.test(url.pathname)) {
    return null;
  }
  if (isFoundAnyway(call, unifiedShape(url.pathname), upstream)) return null;
  return (ids) => {
    const noted = noteMade(call, upstream, ids);
    ctx.waitUntil(noted);
    return noted;
  };
}

function noting(reader: RunReader, note: NoteMade | null): RunReader {
  return note === null ? reader : new NotingReader(reader, note);
}

class NotingReader implements RunReader {
  readonly #inner: RunReader;
  readonly #note: NoteMade;
  #noted: Promise<void> | null = null;

  constructor(inner: RunReader, note: NoteMade) {
    this.#inner = inner;
    this.#note = note;
  }

  push(chunk: Uint8Array): void {
    this.#inner.push(chunk);
    if (this.#noted !== null || this.#inner.made === null) return;
    this.#noted = this.#note(this.#inner.made);
  }

  get reportedRun(): ReportedRun | null {
    return this.#inner.reportedRun;
  }

  get made(): readonly string[] | null {
    return this.#inner.made;
  }

  /**
   * Waits for the record of a run that continues, because the run is polled immediately, possibly through another
   * isolate.
   */
  async caughtUp(): Promise<void> {
    await this.#inner.caughtUp?.();
    if (this.reportedRun?.state === 'goes on') await this.#noted;
  }
}
