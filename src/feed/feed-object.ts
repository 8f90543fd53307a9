import { DurableObject } from 'cloudflare:workers';
import type { FeedEventName } from '../contract/group-status.ts';
import type { Warning, Attention } from '../contract/attention.ts';
import { directoryOf, type Env } from '../env.ts';
import type { FeedWants, PoolReport, FeedRpc } from '../contract/rpc/feed-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock, Timers } from '../runtime/async.ts';
import { bounded } from '../attention/attention.ts';
import { attentionNow, readAttention } from '../overview/all-groups.ts';
import { readDirectory } from '../overview/pools.ts';
import { Picture } from './picture.ts';
import { PoolWatch, Reader } from './subscriptions.ts';

/** The hub of the dashboards, and the object that runs it while there are readers. */

/** Interval at which changes are collected and sent to all readers. */
const TICK_MS = 1_000;

/** Ticks between two beats, and between two reads of the directory. */
const BEAT_TICKS = 2;
const LOOK_TICKS = 5;

/** How long after a read of the directory a new reader needs no other one. */
const LOOKED_LATELY_MS = 250;

/** How long a browser waits before it reconnects after losing its stream. */
const REOPEN_MS = 1_000;

/**
 * Maximum duration of a stream. Its reader then reconnects with a new request, because the platform limits the
 * subrequests of one request, and a page may be open for days.
 */
const STREAM_MS_MAX = 600_000;

/** Maximum warnings that are read to build the attention list: all that the directory keeps. */
const ATTENDED_MAX = 200;

/** Maximum warnings that a new reader receives. */
const WARNINGS_MAX = 50;

/** An open stream, and the work that is still pending for it. */
interface Joined {
  readonly body: ReadableStream;
  readonly welcomed: Promise<void>;
}

/**
 * Serves the dashboards while at least one is open. Pools push their changes, and every event is encoded once and sent
 * to all readers. It ends with its last reader.
 */
class Hub {
  readonly #env: Env;
  readonly #onEmpty: () => void;
  readonly #readers = new Set<Reader>();
  readonly #watch: PoolWatch;
  /** Resolves once all pools have been asked for the first time. */
  readonly #opened: Promise<Picture>;
  /** null until the directory has been read. */
  #picture: Picture | null = null;
  readonly #timers = new Timers(steadyClock);
  #cancelTick: () => void;
  #ticks = 0;
  #looking: Promise<void> | null = null;
  /** null until all pools have been asked. */
  #lookedAt: number | null = null;
  /** Warnings since the first reader joined, latest first. They may be newer than those that the directory returns. */
  #warned: Warning[] = [];
  #snapshot: { readonly at: number; readonly bytes: Uint8Array } | null = null;
  #listedWarnings: readonly Warning[] = [];
  /** The attention list as it was last sent, as JSON. */
  #attention = '';

  constructor(env: Env, onEmpty: () => void) {
    this.#env = env;
    this.#onEmpty = onEmpty;
    this.#watch = new PoolWatch(env, (group) => this.#isViewed(group));
    this.#opened = this.#open();
    // Each reader handles this failure itself.
    this.#opened.catch(() => {});
    this.#cancelTick = this.#timers.after(TICK_MS, () => this.#tick());
  }

  /** Opens a stream. It sends beats at once, a snapshot as soon as there is one, and then changes. */
  join(group: string | null): Joined {
    const endsAt = this.#now() + STREAM_MS_MAX;
    const reader = new Reader(group, endsAt, (gone) => this.#leave(gone));
    this.#readers.add(reader);
    reader.send(retryBytes(REOPEN_MS));
    reader.send(beatBytes());
    const welcomed = this.#welcome(reader).catch((error: unknown) => {
      logEvent('feed_failed', { error: String(error) });
      reader.end();
    });
    return { body: reader.body, welcomed };
  }

  /** Receives a pool's report. Returns what the pool shall push from now on. */
  take(key: string, report: PoolReport): FeedWants {
    const picture = this.#picture;
    const pool = picture?.pools.get(key);
    if (picture === null || pool === undefined) return 'nothing';
    picture.note({ pool, answer: report }, this.#now());
    if (report.configVersion > picture.directory.version && !this.#lookedLately()) {
      this.#lookSoon(picture);
    }
    return this.#isViewed(pool.group) ? 'detail' : 'status';
  }

  /** Sends an event to the readers that have received their snapshot, or to some of them. */
  report(
    name: FeedEventName,
    data: unknown,
    isFor: (reader: Reader) => boolean = () => true,
  ): void {
    const readers = [...this.#readers].filter((reader) => reader.isWelcomed && isFor(reader));
    if (readers.length === 0) return;
    const bytes = eventBytes(name, data);
    for (const reader of readers) reader.send(bytes);
  }

  /** Sends a warning, or its end, to all readers. */
  warn(warning: Warning): void {
    this.#warned = latestOf([warning, ...this.#warned]);
    this.report('warning', warning);
  }

  async #open(): Promise<Picture> {
    const picture = new Picture(await readDirectory(this.#env));
    this.#picture = picture;
    await this.#watch.askDue(picture);
    picture.changes(this.#now()); // The snapshots contain all of it.
    this.#lookedAt = this.#now();
    return picture;
  }

  async #welcome(reader: Reader): Promise<void> {
    const picture = await this.#opened;
    if (!this.#lookedLately()) await this.#look(picture);
    const warnings = await this.#readWarnings();
    reader.send(this.#snapshotOf(picture));
    reader.send(eventBytes('attention', this.#attentionOf(picture)));
    reader.send(eventBytes('warnings', { warnings: latestOf([...this.#warned, ...warnings]) }));
    reader.isWelcomed = true;
    const { group } = reader;
    if (group === null) return;
    await this.#watch.ask(picture, picture.poolsOf(group));
    reader.send(eventBytes('detail', picture.detail(group, this.#now())));
  }

  /** Reads the latest warnings of all pools. Returns none if the directory is unreachable. */
  async #readWarnings(most = WARNINGS_MAX): Promise<readonly Warning[]> {
    try {
      return await directoryOf(this.#env).warnings(most);
    } catch (error) {
      logEvent('directory_unreachable', { error: String(error) });
      return [];
    }
  }

  #attentionOf(picture: Picture): ReturnType<typeof bounded> {
    const warnings = [...this.#warned, ...this.#listedWarnings];
    const groups = picture.groups(this.#now());
    return bounded(attentionNow(this.#env, picture.directory, groups, warnings));
  }

  /** Sends the attention list to all readers if it changed. */
  #reportAttention(picture: Picture): void {
    const list = this.#attentionOf(picture);
    const text = JSON.stringify(list);
    if (text === this.#attention) return;
    this.#attention = text;
    this.report('attention', list);
  }

  /** Builds a snapshot, which dashboards that open at the same time share. */
  #snapshotOf(picture: Picture): Uint8Array {
    const now = this.#now();
    if (this.#snapshot === null || now - this.#snapshot.at >= TICK_MS) {
      const { version, config } = picture.directory;
      const { paused } = config;
      const bytes = eventBytes('snapshot', { version, paused, groups: picture.groups(now) });
      this.#snapshot = { at: now, bytes };
    }
    return this.#snapshot.bytes;
  }

  #tick(): void {
    this.#cancelTick = this.#timers.after(TICK_MS, () => this.#tick());
    this.#ticks += 1;
    if (this.#picture !== null && this.#lookedAt !== null) {
      const now = this.#now();
      const changes = this.#picture.changes(now);
      // Details go before the change of their group, so that a page updates leases and figures together.
      for (const detail of this.#picture.changedDetails(now)) {
        this.report('detail', detail, ({ group }) => group === detail.name);
      }
      if (changes.groups.length + changes.gone.length > 0) {
        this.#snapshot = null;
        this.report('groups', changes);
        this.#reportAttention(this.#picture);
      }
      if (this.#ticks % LOOK_TICKS === 0) this.#lookSoon(this.#picture);
    }
    if (this.#ticks % BEAT_TICKS !== 0) return;
    const beat = beatBytes();
    const now = this.#now();
    for (const reader of this.#readers) {
      if (now < reader.endsAt) reader.send(beat);
      else reader.endWell(retryBytes(0));
    }
  }

  /** Looks for a new version and new pools, and asks pools again that have not reported for long. */
  #look(picture: Picture): Promise<void> {
    this.#looking ??= this.#lookOnce(picture).finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  #lookSoon(picture: Picture): void {
    this.#look(picture).catch(() => {});
  }

  async #lookOnce(picture: Picture): Promise<void> {
    try {
      const { version } = picture.directory;
      picture.update(await readDirectory(this.#env, picture.directory));
      this.#snapshot = null;
      if (picture.directory.version !== version) {
        const { version: next, config } = picture.directory;
        this.report('version', { version: next, paused: config.paused });
      }
      await this.#watch.askDue(picture);
      this.#listedWarnings = await this.#readWarnings(ATTENDED_MAX);
      this.#reportAttention(picture);
    } catch (error) {
      // The last state remains usable until the next read.
      logEvent('directory_unreachable', { error: String(error) });
    }
    this.#lookedAt = this.#now();
  }

  #lookedLately(): boolean {
    return this.#lookedAt !== null && this.#now() - this.#lookedAt <= LOOKED_LATELY_MS;
  }

  #now(): number {
    // The hub's reads set their own timers, so a step back of the clock may have delayed the next tick.
    this.#timers.check();
    return steadyClock.now();
  }

  #isViewed(group: string): boolean {
    for (const reader of this.#readers) if (reader.group === group) return true;
    return false;
  }

  #leave(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#cancelTick();
    this.#onEmpty();
  }
}

/** Returns the latest warnings without duplicates. The first of two with the same id is kept. */
function latestOf(warnings: readonly Warning[]): Warning[] {
  const seen = new Set<string>();
  return warnings
    .filter(({ id }) => !seen.has(id) && seen.add(id))
    .toSorted((a, b) => (a.at < b.at ? 1 : -1))
    .slice(0, WARNINGS_MAX);
}

function beatBytes(): Uint8Array {
  return eventBytes('beat', { at: new Date().toISOString() });
}

const encoder = new TextEncoder();

/** Encodes a server-sent event. JSON has no line breaks of its own, so one `data` line is enough. */
function eventBytes(name: string, data: unknown): Uint8Array {
  return encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Encodes how long a reader waits before it reconnects after losing its stream. */
function retryBytes(waitMs: number): Uint8Array {
  return encoder.encode(`retry: ${waitMs}\n\n`);
}

/**
 * The one object that all dashboards read. It stores nothing: without readers it drops its state, and after a reset its
 * readers reconnect and it asks the pools again.
 */
export class FeedObject extends DurableObject<Env> implements FeedRpc {
  /** null while there are no readers. */
  #hub: Hub | null = null;

  // oxlint-disable-next-line require-await -- the contract is a promise; a throw must become a rejection
  override async fetch(request: Request): Promise<Response> {
    const group = new URL(request.url).searchParams.get('group');
    this.#hub ??= new Hub(this.env, () => {
      this.#hub = null;
    });
    const { body, welcomed } = this.#hub.join(group);
    this.ctx.waitUntil(welcomed);
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  }

  // oxlint-disable-next-line require-await -- as above
  async push(key: string, report: PoolReport): Promise<FeedWants> {
    return this.#hub?.take(key, report) ?? 'nothing';
  }

  async attention(): Promise<readonly Attention[]> {
    const { all } = await readAttention(this.env);
    return bounded(all).attention;
  }

  // oxlint-disable-next-line require-await -- as above
  async warned(warning: Warning): Promise<void> {
    this.#hub?.warn(warning);
  }
}
