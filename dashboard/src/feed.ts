import { batch, computed, effect, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { resting, stopWatching, watchForRest } from './idle-page.ts';
import { checkSession } from './session.ts';
import type { Detail, GroupView, WarningView } from './model/status.ts';
import type { Attention } from '../../src/contract/attention.ts';

/** Maximum silence before the page counts as offline. The server sends a beat every 2 s. */
const SILENCE_MS_MAX = 5_000;

/** Delay before reconnecting. An EventSource retries after network errors, not after a response without a stream. */
const RETRY_MS = 2_000;

const WARNINGS_MAX = 50;

const byName = new Map<string, Signal<GroupView>>();
const reportedAt = new Map<string, number>();
const known = signal<readonly Signal<GroupView>[]>([]);

/** All groups. Each has its own signal, so that only cards of changed groups render again. */
export const groups: ReadonlySignal<readonly ReadonlySignal<GroupView>[]> = known;
/** Leases and waiters of the group whose page is open. null on other pages. */
export const detail = signal<Detail | null>(null);
/** When `detail` arrived, in epoch milliseconds. Ages and waits have grown since. */
export const detailAt = signal(0);
/** Version of the configuration, as in `ETag`. */
export const version = signal<number | null>(null);
export const isAllPaused = signal(false);
/** What needs attention, the most severe first. */
export const attention = signal<readonly Attention[]>([]);
/** Newest first. */
export const warnings = signal<readonly WarningView[]>([]);
/** Whether the first snapshot has arrived. Before that, a missing group may still exist. */
export const isAllReported = signal(false);
/** When the last event arrived, in epoch milliseconds. null before the first one. */
const heardAt = signal<number | null>(null);
/** Time of the browser in epoch milliseconds, updated every second. */
export const now = signal(Date.now());
export const isStale = computed(
  () => heardAt.value !== null && now.value - heardAt.value > SILENCE_MS_MAX,
);

/** When the feed reconnected after a rest, in epoch milliseconds. */
const awakeAt = signal(0);

/** State of the feed. Data may be outdated while it is `connecting`, too. */
export const liveness = computed((): 'live' | 'connecting' | 'offline' | 'resting' => {
  if (resting.value === 'unused') return 'resting';
  if (heardAt.value === null) return 'connecting';
  if (!isStale.value) return 'live';
  return now.value - awakeAt.value > SILENCE_MS_MAX ? 'offline' : 'connecting';
});

/** Counts reconnects after an interruption. Requests that failed meanwhile are repeated when it changes. */
export const returns = signal(0);

/** State of a group. undefined if no group has this name. */
export function groupNamed(name: string): GroupView | undefined {
  void known.value; // subscribes to the list, so that a group that appears later is shown
  return byName.get(name)?.value;
}

/** When the feed last reported a group, in epoch milliseconds. Changes with the state of the group. */
export function reportedAtOf(name: string): number | undefined {
  return reportedAt.get(name);
}

let source: EventSource | null = null;
let retry: ReturnType<typeof setTimeout> | undefined;
let clock: ReturnType<typeof setInterval> | undefined;
let stopResting: (() => void) | undefined;
let isAway = false;
let detailOf: string | null = null;

/** Opens the feed, or reopens it with the details of another group. */
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
  stopResting ??= effect(() => (resting.value === null ? reconnect() : disconnect()));
}

function disconnect(): void {
  closeSource();
  isAway = heardAt.peek() !== null;
}

/** Reconnects after a rest. The server sends a snapshot first, so no change is lost. */
function reconnect(): void {
  if (source !== null) return;
  now.value = Date.now();
  awakeAt.value = Date.now();
  connect();
}

/** Closes the feed at the end of a session. */
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
      // The page and the server ship together, and tests check the shapes of events.
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
      // Updates slots and figures together, so that a page shows one moment.
      if (data.group !== null) take([data.group], []);
    });
  });
  on<{ attention: Attention[] }>('attention', (data) => (attention.value = data.attention));
  on<{ warnings: WarningView[] }>('warnings', (data) => (warnings.value = data.warnings));
  on<WarningView>('warning', (data) => {
    // The server sends a warning again when it is resolved.
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
    // The event carries no cause. The session may have ended.
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
