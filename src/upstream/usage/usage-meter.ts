import type { Dialect } from '../../contract/http.ts';
import { mediaType } from '../../runtime/header-value.ts';
import { EventData, MessageStream } from '../event-streams.ts';
import { JsonWalk, type WalkOptions } from '../json/json-walk.ts';
import { packingsOf, PackedCopy, type Packing } from '../body/packing.ts';
import type { ServiceTiers } from './tiers.ts';
import type { TokenUsage } from './usage.ts';
import { USAGE_VISITOR_KEYS, UsageVisitor } from './usage-visitor.ts';

/** Meters the usage that a response reports, in any of its forms. */

/** A JSON object with usage, as every provider writes it. In the text of a model, its quotes would be escaped. */
const REPORT = /"(?:usage|usageMetadata|meta|amazon-bedrock-invocationMetrics)"\s*:\s*\{/g;

/**
 * Separators between events. A stream normally uses only one of them. If it mixes them, several events are read as one
 * piece, with the same result.
 */
const ENDS = ['\n\n', '\n\r\n', '\r\r'];

/**
 * Number of events at the beginning that are read until one names the model. Anthropic's first event also reports the
 * input.
 */
const HEAD_EVENTS_MAX = 8;

/** Maximum number of reports that are read in one piece of the stream. The last ones include those in between. */
const REPORTS_MAX = 8;

/** Maximum characters of an incomplete event that are kept. A longer one is read as it arrives. */
const HELD_MAX = 65_536;

const USAGE_BYTES_MAX = 8_192;

interface UsageReports {
  readonly usage: TokenUsage | null;
  readonly outputTokensSeen: number;
  readonly tiers?: ServiceTiers;
  readonly model?: string;
}

/**
 * Reads only the usage reports in a stream of events. Events without one are skipped by a search for its key, at a
 * tenth of the CPU cost of parsing their JSON. It counts no text, so a stream that is cut before its report has no
 * usage.
 */
class EventReports {
  readonly #visitor: UsageVisitor;
  readonly #walk: JsonWalk;
  readonly #events: EventData;
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();
  /** The beginning of an incomplete event. */
  #held = '';
  /** Whether the current event is read as it arrives. */
  #isWalking = false;
  #headLeft = HEAD_EVENTS_MAX;
  /** The separator between events in this stream. null if no event has ended. */
  #eventEnd: string | null = null;

  constructor(shape: Dialect) {
    this.#visitor = new UsageVisitor(shape, null);
    const options = { form: 'document', keys: USAGE_VISITOR_KEYS } as const;
    this.#walk = new JsonWalk(this.#visitor, { ...options, keepBytesMax: USAGE_BYTES_MAX });
    this.#events = new EventData(
      (piece) => this.#walk.push(piece),
      () => this.#walk.close(),
    );
  }

  push(chunk: Uint8Array): void {
    this.#pass(this.#decoder.decode(chunk, { stream: true }));
  }

  end(): UsageReports {
    this.#pass(this.#decoder.decode());
    if (this.#held !== '') this.#read(`${this.#held}\n\n`);
    this.#walk.close();
    const { usage, tiers, model } = this.#visitor;
    return {
      usage,
      outputTokensSeen: usage?.outputTokens ?? 0,
      ...(Object.keys(tiers).length > 0 && { tiers }),
      ...(model !== null && { model }),
    };
  }

  #pass(text: string): void {
    let rest = this.#held + text;
    this.#eventEnd ??= firstEnd(rest);
    if (this.#isWalking) {
      const end = this.#endAfter(rest, 0);
      this.#push(end === -1 ? rest : rest.slice(0, end));
      // A separator that is split between two chunks is missed here, so the next event is parsed as well.
      if (end === -1) return;
      this.#isWalking = false;
      rest = rest.slice(end);
    }
    const end = this.#endBefore(rest, rest.length);
    if (end > 0) this.#read(rest.slice(0, end));
    this.#held = rest.slice(end);
    if (this.#held.length <= HELD_MAX) return;
    this.#isWalking = true;
    this.#push(this.#held);
    this.#held = '';
  }

  /** Reads complete events: the first ones, and those with a report. */
  #read(text: string): void {
    let from = 0;
    while (this.#headLeft > 0 && from < text.length) {
      const end = this.#endAfter(text, from);
      const next = end === -1 ? text.length : end;
      this.#push(text.slice(from, next));
      this.#headLeft = this.#visitor.model === null ? this.#headLeft - 1 : 0;
      from = next;
    }
    const found: (readonly [begin: number, end: number])[] = [];
    REPORT.lastIndex = from;
    for (let match = REPORT.exec(text); match !== null; match = REPORT.exec(text)) {
      const end = this.#endAfter(text, match.index);
      const next = end === -1 ? text.length : end;
      found.push([Math.max(from, this.#endBefore(text, match.index)), next]);
      REPORT.lastIndex = next;
    }
    const few = REPORTS_MAX / 2;
    for (const [at, [begin, end]] of found.entries()) {
      if (at < few || at >= found.length - few) this.#push(text.slice(begin, end));
    }
  }

  #push(text: string): void {
    this.#events.push(this.#encoder.encode(text));
  }

  /** Returns the end of the event that contains a position, or -1 if it is not in this text. */
  #endAfter(text: string, from: number): number {
    const end = this.#eventEnd;
    const at = end === null ? -1 : text.indexOf(end, from);
    return end === null || at === -1 ? -1 : at + end.length;
  }

  /** Returns the end of the last event before a position, or 0 if none ends in this text. */
  #endBefore(text: string, before: number): number {
    const end = this.#eventEnd;
    const at = end === null ? -1 : text.lastIndexOf(end, before - end.length);
    return end === null || at === -1 ? 0 : at + end.length;
  }
}

/** Returns the separator that occurs first in a text, or null. */
function firstEnd(text: string): string | null {
  let first: string | null = null;
  let firstAt = Infinity;
  for (const end of ENDS) {
    const at = text.indexOf(end);
    if (at !== -1 && at < firstAt) [first, firstAt] = [end, at];
  }
  return first;
}

/** Assumed UTF-8 bytes of text per token. Measured averages: 4.3 for English, 4.8 for code, 4.4 for Chinese. */
export const TEXT_BYTES_PER_TOKEN = 4;

const WRAPPED_BYTES_MAX = 65_536;

/** The usage of a response, as far as it was read. */
export interface MeteredUsage {
  /** The upstream's report. For a stream that was cut, the report up to that point. null if there was none. */
  readonly usage: TokenUsage | null;
  /**
   * Output tokens: those reported, plus an estimate for the text after the last report. For a complete response this is
   * exactly the reported number, or an estimate of everything if none was reported.
   */
  readonly outputTokensSeen: number;
  /** The tiers that the response reports. Absent if it reports none. */
  readonly tiers?: ServiceTiers;
  /** The model that the response names. Absent if it names none. */
  readonly model?: string;
}

export interface UsageMeter {
  /** Reads the next bytes, split anywhere. They are neither kept nor changed. */
  push(chunk: Uint8Array): void;
  /** Resolves when all pushed bytes are read. Must be awaited before `end`. Absent if bytes are read immediately. */
  caughtUp?: () => Promise<void>;
  /** Whether the body is unreadable, because it is not compressed as declared or is a decompression bomb. */
  readonly isLost?: boolean;
  /** Returns what was read so far. Nothing may be pushed afterwards. */
  end(): MeteredUsage;
}

/**
 * Creates a meter for a response of this shape and type. Returns null if nothing in it can be read, as in audio, in
 * responses of an opaque upstream, or with an unknown encoding. A caller that needs the usage should request
 * `accept-encoding: identity` from the upstream, which avoids decompression.
 *
 * The response may be of any length. The meter keeps a few hundred bytes and finds usage at any position. An event of a
 * stream takes 1 to 2 µs.
 */
export function createUsageMeter(
  shape: Dialect,
  contentType: string | null,
  contentEncoding: string | null,
): UsageMeter | null {
  const packings = packingsOf(contentEncoding);
  if (shape === 'opaque' || packings === null) return null;
  const meter = plainMeter(shape, contentType);
  return meter === null || packings.length === 0 ? meter : packedMeter(meter, packings);
}

/** As `createUsageMeter`, for calls without an estimate. In a stream of events, only the reports are read. */
export function createReportMeter(
  shape: Dialect,
  contentType: string | null,
  contentEncoding: string | null,
): UsageMeter | null {
  const packings = packingsOf(contentEncoding);
  if (mediaType(contentType) !== 'text/event-stream' || shape === 'opaque' || packings === null) {
    return createUsageMeter(shape, contentType, contentEncoding);
  }
  const meter = new EventReports(shape);
  return packings.length === 0 ? meter : packedMeter(meter, packings);
}

/** Meters a decompressed copy of a compressed response. */
function packedMeter(meter: UsageMeter, packings: readonly Packing[]): UsageMeter {
  const copy = new PackedCopy(packings, (bytes) => meter.push(bytes));
  return {
    get isLost() {
      return copy.isLost;
    },
    push: (chunk) => copy.push(chunk),
    caughtUp: () => copy.caughtUp(),
    end() {
      copy.close();
      return meter.end();
    },
  };
}

function plainMeter(shape: Dialect, contentType: string | null): UsageMeter | null {
  switch (mediaType(contentType)) {
    case 'application/json':
      return jsonMeter(shape, 'document');
    case 'text/event-stream':
      return eventsMeter(shape);
    case 'application/x-ndjson':
    case 'application/jsonl':
      return jsonMeter(shape, 'lines');
    case 'application/vnd.amazon.eventstream':
      return eventStreamMeter(shape);
    default:
      return null;
  }
}

function jsonMeter(shape: Dialect, form: WalkOptions['form']): UsageMeter {
  const visitor = new UsageVisitor(shape, null);
  const walk = walkOf(visitor, form, USAGE_BYTES_MAX);
  return {
    push: (chunk) => walk.push(chunk),
    end() {
      walk.close();
      return seenBy(visitor);
    },
  };
}

/** Server-sent events. Their JSON may span several data lines. */
function eventsMeter(shape: Dialect): UsageMeter {
  const visitor = new UsageVisitor(shape, null);
  const walk = walkOf(visitor, 'document', USAGE_BYTES_MAX);
  const events = new EventData(
    (piece) => walk.push(piece),
    () => walk.close(),
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      walk.close();
      return seenBy(visitor);
    },
  };
}

/** Bedrock. Converse sends its own events, and all other operations wrap the model's events in base64. */
function eventStreamMeter(shape: Dialect): UsageMeter {
  let model: JsonWalk | null = null;
  const visitor = new UsageVisitor(shape, (base64) => {
    model ??= walkOf(visitor, 'document', USAGE_BYTES_MAX);
    model.push(decoded(base64));
    model.close();
  });
  const walk = walkOf(visitor, 'document', WRAPPED_BYTES_MAX);
  const payloads = new MessageStream(
    (piece) => walk.push(piece),
    () => walk.close(),
  );
  return {
    push: (chunk) => payloads.push(chunk),
    end() {
      walk.close();
      return seenBy(visitor);
    },
  };
}

function walkOf(visitor: UsageVisitor, form: WalkOptions['form'], keepBytesMax: number): JsonWalk {
  return new JsonWalk(visitor, { form, keys: USAGE_VISITOR_KEYS, keepBytesMax });
}

function seenBy({ usage, unreportedBytes, tiers, model }: UsageVisitor): MeteredUsage {
  const unreported = Math.ceil(unreportedBytes / TEXT_BYTES_PER_TOKEN);
  return {
    usage,
    outputTokensSeen: (usage?.outputTokens ?? 0) + unreported,
    ...(Object.keys(tiers).length > 0 && { tiers }),
    ...(model !== null && { model }),
  };
}

/** Decodes base64. Returns no bytes for invalid input. */
function decoded(base64: Uint8Array): Uint8Array {
  try {
    const binary = atob(new TextDecoder('latin1').decode(base64));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
