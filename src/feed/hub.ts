import type { FeedEventName } from '../contract/admin/feed-events.ts';
import type { Warning } from '../contract/warnings.ts';
import { directoryOf, type Env } from '../env.ts';
import type { FeedWants, PoolReport } from '../contract/rpc/feed-rpc.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/steady-clock.ts';
import { Timers } from '../runtime/timers.ts';
import { bounded } from '../attention/attention.ts';
import { attentionNow } from '../overview/attention.ts';
import { readDirectory } from '../overview/pools.ts';
import { eventBytes, retryBytes } from './event.ts';
import { Picture } from './picture.ts';
import { PoolWatch } from './pool-watch.ts';
import { Reader } from './reader.ts';

/** How long changes are gathered, to be told to everybody at once. */
const TICK_MS = 1_000;

/** Ticks between two beats, and between two looks at what the directory lists. */
const BEAT_TICKS = 2;
const LOOK_TICKS = 5;

/** How long after a look a reader that comes is welcomed without another one. */
const LOOKED_LATELY_MS = 250;

/** How long a browser whose stream broke off waits before it opens another one. */
const REOPEN_MS = 1_000;

/**
 * How long a stream lasts. Each opens once more by itself, as a request of its own: what one request may ask of pools and
 * directory is bounded, and a page may be open for days.
 */
const STREAM_MS_MAX = 600_000;

/** Maximum of warnings that are read to find what needs a person: all that the directory keeps. */
const ATTENDED_MAX = 200;

/** Maximum of warnings that a reader is told when it comes. */
const WARNINGS_MAX = 50;

/** A stream that was opened, and what still goes on for its sake. */
interface Joined {
  readonly body: ReadableStream;
  readonly welcomed: Promise<void>;
}

/**
 * The life of the dashboards while at least one is open: the pools push what changes in them, and every
 * event is made once and sent to all. It ends with its last reader.
 */
export class Hub {
  readonly #env: Env;
  readonly #onEmpty: () => void;
  readonly #readers = new Set<Reader>();
  readonly #watch: PoolWatch;
  /** Resolves once all pools have been asked for the first time. */
  readonly #opened: Promise<Picture>;
  /** Null: the directory has not been read yet. */
  #picture: Picture | null = null;
  readonly #timers = new Timers(steadyClock);
  #cancelTick: () => void;
  #ticks = 0;
  #looking: Promise<void> | null = null;
  /** Null: not all pools have been asked yet. */
  #lookedAt: number | null = null;
  /** Warnings since the first reader came, the latest first: what one is told may be younger than what the directory has. */
  #warned: Warning[] = [];
  #snapshot: { readonly at: number; readonly bytes: Uint8Array } | null = null;
  /** The last warnings of all pools that the directory had at the last look. */
  #listedWarnings: readonly Warning[] = [];
  /** The list of what needs a person as it was sent last, as JSON. */
  #attention = '';

  constructor(env: Env, onEmpty: () => void) {
    this.#env = env;
    this.#onEmpty = onEmpty;
    this.#watch = new PoolWatch(env, (group) => this.#isLookedAt(group));
    this.#opened = this.#open();
    // Every reader is told by itself.
    this.#opened.catch(() => {});
    this.#cancelTick = this.#timers.after(TICK_MS, () => this.#tick());
  }

  /** Opens a stream: beats at once, the snapshot as soon as there is one, and then what changes. */
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

  /** Takes what a pool pushes, and says what to push from now on. */
  take(key: string, report: PoolReport): FeedWants {
    const picture = this.#picture;
    const pool = picture?.pools.get(key);
    if (picture === null || pool === undefined) return 'nothing';
    picture.note({ pool, answer: report }, this.#now());
    if (report.configVersion > picture.directory.version && !this.#lookedLately()) {
      this.#lookSoon(picture);
    }
    return this.#isLookedAt(pool.group) ? 'detail' : 'status';
  }

  /** Sends an event to everybody who knows what was before it, or to some of them. */
  report(
    name: FeedEventName,
    data: unknown,
    isMeant: (reader: Reader) => boolean = () => true,
  ): void {
    const readers = [...this.#readers].filter((reader) => reader.isWelcomed && isMeant(reader));
    if (readers.length === 0) return;
    const bytes = eventBytes(name, data);
    for (const reader of readers) reader.send(bytes);
  }

  /** Tells everybody of a warning, or that one is over. */
  warn(warning: Warning): void {
    this.#warned = latestOf([warning, ...this.#warned]);
    this.report('warning', warning);
  }

  async #open(): Promise<Picture> {
    const picture = new Picture(await readDirectory(this.#env));
    this.#picture = picture;
    await this.#watch.askDue(picture);
    picture.changes(this.#now()); // All of it is in the snapshots.
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

  /** Reads the last warnings of all pools. None: the directory is one of before, or out of reach. */
  async #readWarnings(most = WARNINGS_MAX): Promise<readonly Warning[]> {
    try {
      return await directoryOf(this.#env).warnings(most);
    } catch (error) {
      logEvent('directory_unreachable', { error: String(error) });
      return [];
    }
  }

  /** Makes the list of what needs a person, from what the pools have said. */
  #attentionOf(picture: Picture): ReturnType<typeof bounded> {
    const warnings = [...this.#warned, ...this.#listedWarnings];
    const groups = picture.groups(this.#now());
    return bounded(attentionNow(this.#env, picture.directory, groups, warnings));
  }

  /** Sends that list to everybody, if it changed. */
  #reportAttention(picture: Picture): void {
    const list = this.#attentionOf(picture);
    const text = JSON.stringify(list);
    if (text === this.#attention) return;
    this.#attention = text;
    this.report('attention', list);
  }

  /** Makes a snapshot, which dashboards that open at the same time share. */
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
      // Before the change of the group without them: its leases and its figures change as one on a page.
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

  /** Looks for a new version and for new pools, and asks those anew who have said nothing for long. */
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
      picture.turn(await readDirectory(this.#env, picture.directory));
      this.#snapshot = null;
      if (picture.directory.version !== version) {
        const { version: next, config } = picture.directory;
        this.report('version', { version: next, paused: config.paused });
      }
      await this.#watch.askDue(picture);
      this.#listedWarnings = await this.#readWarnings(ATTENDED_MAX);
      this.#reportAttention(picture);
    } catch (error) {
      // What is known is better than nothing, and the next look comes soon.
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

  #isLookedAt(group: string): boolean {
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

/** Picks the latest, each once: of two that are the same the first. */
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
