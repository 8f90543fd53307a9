import { batch, computed, effect, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { resting, stopWatching, watchForRest } from './idle-page.ts';
import { checkSession } from './session.ts';
import type { Detail, GroupView, WarningView } from './model/status.ts';
import type { Attention } from '../../src/contract/attention.ts';

/**
 * Maximum silence before the page counts as offline; the server says every 2 s that it is there.
 */
const SILENCE_MS_MAX = 5_000;

/**
 * How long until another try. An EventSource tries again by itself after an error, but not after an answer that
 * is no stream.
 */
const RETRY_MS = 2_000;

/** Maximum of warnings that are kept on the page. */
const WARNINGS_MAX = 50;

const byName = new Map<string, Signal<GroupView>>();
const reportedAt = new Map<string, number>();
const known = signal<readonly Signal<GroupView>[]>([]);

/** Every group, each with a signal of its own, so that only the cards are drawn again that changed. */
export const groups: ReadonlySignal<readonly ReadonlySignal<GroupView>[]> = known;
/** Leases and waiters of the group whose page is open. */
export const detail = signal<Detail | null>(null);
/** When they were told, in epoch milliseconds: ages and waits have gone on since. */
export const detailAt = signal(0);
/** Version of the configuration, as `ETag` has it. */
export const version = signal<number | null>(null);
/** Everything is paused. */
export const isAllPaused = signal(false);
/** The list of what needs a person, the worst first, as the server finds it. */
export const attention = signal<readonly Attention[]>([]);
/** The latest first. */
export const warnings = signal<readonly WarningView[]>([]);
/** Every group has been told of: that there is none is only known then. */
export const isAllReported = signal(false);
/** Epoch milliseconds of the last word of the server; null: none yet. */
const heardAt = signal<number | null>(null);
/** This second, by the clock of the browser. */
export const now = signal(Date.now());
/** Nothing was heard for so long that what is shown may be old. */
export const isStale = computed(
  () => heardAt.value !== null && now.value - heardAt.value > SILENCE_MS_MAX,
);

/** When the feed was taken up again after a rest, in epoch milliseconds. */
const awakeAt = signal(0);

/** How the feed is: figures may be old while it is `connecting` too, after a rest. */
export const liveness = computed((): 'live' | 'connecting' | 'offline' | 'resting' => {
  if (resting.value === 'unused') return 'resting';
  if (heardAt.value === null) return 'connecting';
  if (!isStale.value) return 'live';
  return now.value - awakeAt.value > SILENCE_MS_MAX ? 'offline' : 'connecting';
});

/** How often the feed has come back after it was gone: what was asked for by itself may have failed meanwhile. */
export const returns = signal(0);

/** The state of one group by its name; undefined: there is none of that name. */
export function groupNamed(name: string): GroupView | undefined {
  void known.value; // a group that appears later is shown as soon as it does
  return byName.get(name)?.value;
}

/** When the feed told of a group last, in epoch milliseconds. Changes with the group's state. */
export function reportedAtOf(name: string): number | undefined {
  return reportedAt.get(name);
}

let source: EventSource | null = null;
let retry: ReturnType<typeof setTimeout> | undefined;
let clock: ReturnType<typeof setInterval> | undefined;
let stopResting: (() => void) | undefined;
let isAway = false;
let detailOf: string | null = null;

/** Opens the feed, or opens it anew with the details of a group. */
export function openFeed(group: string | null): void {
  if (clock === undefined) {
    clock = setInterval(() => (now.value = Date.now()), 1_000);
    watchForRest();
  }
  if (source === null || detailOf !== group) {
    closeSource();
    if (detailOf !== group) detail.value = null;
    detailOf = group;
    if (resting.peek() === null) connect();
  }
  stopResting ??= effect(() => (resting.value === null ? comeBack() : letGo()));
}

function letGo(): void {
  closeSource();
  isAway = heardAt.peek() !== null;
}

/** Takes the feed up again after a rest: a snapshot comes first, so nothing is lost. */
function comeBack(): void {
  if (source !== null) return;
  now.value = Date.now();
  awakeAt.value = Date.now();
  connect();
}

/** Ends the feed, because nobody is signed in any more. */
export function closeFeed(): void {
  closeSource();
  clearInterval(clock);
  clock = undefined;
  stopResting?.();
  stopResting = undefined;
  stopWatching();
  heardAt.value = null;
  isAllReported.value = false;
}

function closeSource(): void {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function connect(): void {
  const query = detailOf === null ? '' : `?group=${encodeURIComponent(detailOf)}`;
  const opened = new EventSource(`/admin/api/events${query}`);
  source = opened;
  const on = <Data>(name: string, use: (data: Data) => void): void => {
    opened.addEventListener(name, (event: MessageEvent<string>) => {
      if (isAway || isStale.peek()) returns.value += 1;
      isAway = false;
      heardAt.value = Date.now();
      // The server is this very one, and its tests hold it to the shapes.
      use(JSON.parse(event.data) as Data);
    });
  };
  on<{ version: number; paused: boolean; groups: GroupView[] }>('snapshot', (data) => {
    version.value = data.version;
    isAllPaused.value = data.paused;
    const names = new Set(data.groups.map(({ name }) => name));
    take(
      data.groups,
      [...byName.keys()].filter((name) => !names.has(name)),
    );
    isAllReported.value = true;
  });
  on<{ groups: GroupView[]; gone: string[] }>('groups', (data) => take(data.groups, data.gone));
  on<Detail>('detail', (data) => {
    batch(() => {
      detailAt.value = Date.now();
      detail.value = data;
      // Slots and figures on a page are of one moment.
      if (data.group !== null) take([data.group], []);
    });
  });
  on<{ attention: Attention[] }>('attention', (data) => (attention.value = data.attention));
  on<{ warnings: WarningView[] }>('warnings', (data) => (warnings.value = data.warnings));
  on<WarningView>('warning', (data) => {
    // One that is over comes again, as it is now.
    const before = warnings.value;
    warnings.value = before.some(({ id }) => id === data.id)
      ? before.map((each) => (each.id === data.id ? data : each))
      : [data, ...before].slice(0, WARNINGS_MAX);
  });
  on<{ version: number; paused: boolean }>('version', (data) => {
    version.value = data.version;
    isAllPaused.value = data.paused;
  });
  on('beat', () => undefined);
  opened.addEventListener('error', () => {
    isAway = heardAt.peek() !== null;
    if (opened.readyState !== EventSource.CLOSED || source !== opened) return;
    // It does not say why: the session may have ended.
    checkSession().catch(() => undefined);
    retry = setTimeout(connect, RETRY_MS);
  });
}

function take(changed: readonly GroupView[], gone: readonly string[]): void {
  const at = Date.now();
  batch(() => {
    let isListChanged = false;
    for (const group of changed) {
      reportedAt.set(group.name, at);
      const one = byName.get(group.name);
      if (one === undefined) {
        byName.set(group.name, signal(group));
        isListChanged = true;
      } else {
        one.value = group;
      }
    }
    for (const name of gone) {
      reportedAt.delete(name);
      isListChanged = byName.delete(name) || isListChanged;
    }
    if (isListChanged || known.value.length === 0) known.value = [...byName.values()];
  });
}
