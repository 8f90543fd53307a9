import { mediaType } from '../../runtime/header-value.ts';
import type { Dialect } from '../../contract/dialect.ts';
import { packingsOf, type Packing } from '../body/packing.ts';
import { PackedCopy } from '../body/packed-copy.ts';
import { EventData } from '../events/event-data.ts';
import { MessageStream } from '../events/message-stream.ts';
import { JsonWalk } from '../json/json-walk.ts';
import type { WalkOptions } from '../json/json-walk.ts';
import { EventReports } from './event-reports.ts';
import type { ServiceTiers } from './tiers.ts';
import type { TokenUsage } from './usage.ts';
import { USAGE_VISITOR_KEYS, UsageVisitor } from './usage-visitor.ts';

/** Assumed UTF-8 bytes of text per token. Measured averages: 4.3 for English, 4.8 for code, 4.4 for Chinese. */
export const TEXT_BYTES_PER_TOKEN = 4;

/** Maximum bytes of a usage object. Typical are some hundred, or some thousand in Bedrock's wrapped events. */
const USAGE_BYTES_MAX = 8_192;
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
