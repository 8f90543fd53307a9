import type { Dialect } from '../../contract/dialect.ts';
import { EventData } from '../events/event-data.ts';
import { JsonWalk } from '../json/json-walk.ts';
import type { ServiceTiers } from './tiers.ts';
import type { TokenUsage } from './usage.ts';
import { USAGE_VISITOR_KEYS, UsageVisitor } from './usage-visitor.ts';

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
export class EventReports {
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
