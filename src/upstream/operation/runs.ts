import { KeyNames, textOf } from '../json/json-string.ts';
import type { JsonVisitor, ValueKind, WalkedValue, Want } from '../json/json-syntax.ts';
import { JsonWalk } from '../json/json-walk.ts';
import { PackedCopy, type Packing } from '../body/packing.ts';
import { readingsOf } from './readings.ts';

/**
 * Runs continue at an upstream after the response to the call that started them, and are requested by their ids. They
 * are background responses and interactions, runs of assistants' threads, videos, Bedrock's asynchronous invocations,
 * and Gemini's operations.
 */

/**
 * Paths whose calls may start a run. The parameters that request one have too many spellings, so the response decides.
 */
const STARTS =
  /\/(?:responses|threads\/(?:[^/]+\/)?runs|threads\/[^/]+\/runs\/[^/]+\/submit_tool_outputs|interactions|videos(?:\/(?:edits|extensions|[^/]+\/remix))?|video\/generations(?:\/jobs)?|async-invoke)$|:predictLongRunning$/i;

/** Paths that request or cancel a run. Vertex names the run in the body. An ARN has a slash, escaped or not. */
const ASKS =
  /\/(?:responses|interactions|videos|video\/generations(?:\/jobs)?|async-invoke|operations|threads\/[^/]+\/runs)\/[^/]+(?:\/cancel)?$|\/async-invoke\/arn:[^/]+\/[^/]+$|:fetchPredictOperation$/i;

/** Paths whose POST cancels a run. */
const CANCELS = /\/(?:responses|interactions|threads\/[^/]+\/runs)\/[^/]+\/cancel$/i;

/**
 * Statuses of runs that continue, in lower case and without separators. Any other status ends the hold, because a run
 * that waits for its caller generates nothing.
 */
const CONTINUING: ReadonlySet<string> = new Set([
  'queued',
  'pending',
  'submitted',
  'starting',
  'preprocessing',
  'processing',
  'running',
  'inprogress',
  'cancelling',
  'canceling',
]);

const ID_MAX = 500;

/** Whether a call of a path may start a run on some server. The response decides. */
export function mayStartRunAt(path: string): boolean {
  return [path, ...readingsOf(path)].some((each) => STARTS.test(withoutSlash(each)));
}

/** Whether every reading of a path requests a run. Other stored objects may contain any statement about a run. */
export function asksForRun(path: string): boolean {
  return [path, ...readingsOf(path)].every((each) => ASKS.test(withoutSlash(each)));
}

/** Whether every reading of a path cancels a run. */
export function cancelsRun(path: string): boolean {
  return [path, ...readingsOf(path)].every((each) => CANCELS.test(withoutSlash(each)));
}

function withoutSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

export interface ReportedRun {
  readonly id: string;
  readonly state: 'goes on' | 'ended' | 'cancelled';
}

/** Reads the state of a run from a value. Returns null if it contains none. */
export function runIn(value: unknown): ReportedRun | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const fields = value as Readonly<Record<string, unknown>>;
  const id = [fields['id'], fields['invocationArn'], fields['name']].find(isId);
  // A foreground response has no run.
  if (id === undefined || fields['background'] === false) return null;
  const state = stateOf(fields);
  return state === null ? null : { id, state };
}

function stateOf(fields: Readonly<Record<string, unknown>>): ReportedRun['state'] | null {
  const { status, done, deleted, invocationArn, name } = fields;
  if (deleted === true) return 'cancelled';
  if (typeof status === 'string') {
    if (CONTINUING.has(status.toLowerCase().replace(/[\s_-]/g, ''))) return 'goes on';
    return /^cancel/i.test(status) ? 'cancelled' : 'ended';
  }
  // Gemini only reports that an operation has ended, and Bedrock responds to the start with just the name.
  if (done === true) return 'ended';
  const isOperation = typeof name === 'string' && name.includes('operations/');
  return isOperation || typeof invocationArn === 'string' ? 'goes on' : null;
}

export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= ID_MAX;
}

/**
 * Reads the state of a run from a response while its bytes pass. Servers write the fields in any order, and the
 * caller's instructions may precede the relevant ones. The response may therefore have any length, and is never
 * buffered.
 */

/** Reads the state of a run from a response while its bytes pass. */
export interface RunReader {
  push(chunk: Uint8Array): void;
  readonly reportedRun: ReportedRun | null;
  /**
   * Ids by which the object in the response can be requested later. null if it is not stored, or that is not known yet.
   */
  readonly made: readonly string[] | null;
  /** Resolves when all pushed bytes are read. Absent if bytes are read immediately. */
  caughtUp?(): Promise<void>;
}

const FIELDS = ['id', 'name', 'invocationArn', 'status', 'done', 'deleted', 'background'];
/** Fields that describe how a response is stored. */
const STORED = ['store', 'thread_id'];
/** Fields that name the event of a line of a stream. */
const TYPES = ['type', 'event_type', 'object'];
/** Objects in an event that describe the run. */
const NESTED: ReadonlySet<string> = new Set(['response', 'interaction']);
const KEYS = new KeyNames([...FIELDS, ...STORED, ...TYPES, ...NESTED]);

/** Maximum bytes of a value. The longest id is shorter, even if every character is escaped. */
const VALUE_BYTES_MAX = 4_096;

/** Keeps the fields of each record that describe a run, at its top level and in the nested object. */
class RunVisitor implements JsonVisitor {
  readonly #onRecord: (isWhole: boolean) => void;
  top: Record<string, unknown> = {};
  nested: Record<string, unknown> | null = null;
  #hasEnded = false;

  constructor(onRecord: (isWhole: boolean) => void) {
    this.#onRecord = onRecord;
  }

  begin(value: WalkedValue, kind: ValueKind): Want {
    if (this.#hasEnded) {
      this.#hasEnded = false;
      this.top = {};
      this.nested = null;
    }
    const { depth } = value;
    const key = value.key(depth);
    if (depth === 1 && kind === 'object' && NESTED.has(key)) {
      this.nested = {};
      return 'walk';
    }
    const isText = kind === 'string' || kind === 'scalar';
    return isText && key !== '' ? 'keep' : 'skip';
  }

  end(value: WalkedValue, kind: ValueKind): void {
    const { depth, kept } = value;
    const text = textOf(kept);
    const fields = depth === 1 ? this.top : this.nested;
    // Of values that are not strings, only booleans matter.
    if (fields !== null) fields[value.key(depth)] = kind === 'string' ? text : text === 'true';
  }

  record(isWhole: boolean): void {
    this.#hasEnded = true;
    this.#onRecord(isWhole);
  }
}

/** Reads a response that is one JSON object. */
export class RunDocument implements RunReader {
  readonly #visitor: RunVisitor;
  readonly #walk: JsonWalk;
  isWhole = false;

  constructor(onReported: (run: ReportedRun) => void = () => {}) {
    this.#visitor = new RunVisitor((isWhole) => {
      this.isWhole = isWhole;
      const { reportedRun } = this;
      if (reportedRun !== null) onReported(reportedRun);
    });
    this.#walk = walkOf(this.#visitor, 'object');
  }

  push(chunk: Uint8Array): void {
    this.#walk.push(chunk);
  }

  /** The last reported state of the run. */
  get reportedRun(): ReportedRun | null {
    const { top, nested } = this.#visitor;
    return runIn(top) ?? runIn(nested);
  }

  get made(): readonly string[] | null {
    return this.isWhole ? madeIn(this.#visitor.top) : null;
  }
}

/** Types of the events that report the state of a run. */
const PUSHES =
  /^(?:response\.(?:created|queued|in_progress|completed|failed|incomplete|cancelled)$|interaction\.)/;

export class RunEvents implements RunReader {
  readonly #visitor: RunVisitor;
  readonly #walk: JsonWalk;
  readonly #onReported: (run: ReportedRun) => void;
  /** Whether the stream belongs to a foreground response, whose rest is not read. */
  #isOver = false;
  /** The last reported state. null if no run in the background was reported. */
  reportedRun: ReportedRun | null = null;
  made: readonly string[] | null = null;

  constructor(onReported: (run: ReportedRun) => void = () => {}) {
    this.#onReported = onReported;
    this.#visitor = new RunVisitor((isWhole) => {
      if (isWhole && !this.#isOver) this.#read();
    });
    this.#walk = walkOf(this.#visitor, 'lines');
  }

  push(chunk: Uint8Array): void {
    if (!this.#isOver) this.#walk.push(chunk);
  }

  #read(): void {
    const { top, nested } = this.#visitor;
    const isThread = top['object'] === 'thread.run';
    const type = top['type'] ?? top['event_type'];
    // Some servers name the event only in its `event` line.
    const isReporting = type === undefined || (typeof type === 'string' && PUSHES.test(type));
    const reported = isThread ? top : isReporting ? nested : null;
    if (reported === null) return;
    this.made ??= madeIn(reported);
    if (!isThread && reported['background'] !== true) {
      // If it were a background run, all of its events would say so.
      this.#isOver = true;
      return;
    }
    const reportedRun = runIn(reported);
    if (reportedRun === null) return;
    this.reportedRun = reportedRun;
    this.#onReported(reportedRun);
  }
}

/** Reads the ids of a stored object. A run of a thread can also be requested by the id of its thread. */
function madeIn({
  id,
  thread_id: thread,
  store,
  deleted,
}: Record<string, unknown>): readonly string[] | null {
  if (!isId(id) || store === false || deleted === true) return null;
  return isId(thread) ? [id, thread] : [id];
}

function walkOf(visitor: RunVisitor, form: 'object' | 'lines'): JsonWalk {
  return new JsonWalk(visitor, { form, keys: KEYS, keepBytesMax: VALUE_BYTES_MAX });
}

export class PackedRun implements RunReader {
  readonly #inner: RunReader;
  readonly #copy: PackedCopy;

  constructor(inner: RunReader, packings: readonly Packing[]) {
    this.#inner = inner;
    this.#copy = new PackedCopy(packings, (bytes) => inner.push(bytes));
  }

  push(chunk: Uint8Array): void {
    this.#copy.push(chunk);
  }

  get reportedRun(): ReportedRun | null {
    return this.#inner.reportedRun;
  }

  get made(): readonly string[] | null {
    return this.#inner.made;
  }

  caughtUp(): Promise<void> {
    return this.#copy.caughtUp();
  }
}
