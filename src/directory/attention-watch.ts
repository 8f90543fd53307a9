import type { Attention } from '../contract/attention.ts';
import type { AttentionRule } from '../contract/status-words.ts';
import type { WebhookConfig } from '../contract/config/config.ts';
import { feedOf, type Env } from '../env.ts';
import { logEvent } from '../runtime/log.ts';
import { deliverAttention, webhookDependencies } from '../runtime/webhook.ts';
import type { Alarm } from './store.ts';

/** `attention (key, data)`: entries that were sent to the webhook, as JSON (`SentEntry`). See `design/storage.md`. */
const TABLE = `CREATE TABLE IF NOT EXISTS attention (key TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`;

/** Delay between a sign of change and the next check, and interval between checks. */
const SOON_MS = 5_000;
const EVERY_MS = 60_000;

/** How long an entry must be gone to count as resolved, because some come and go. */
const OVER_AFTER_MS = 60_000;

/** Maximum entries whose delivery is stored. */
const SENT_MAX = 500;

/** Rules whose entries end with a change or a call, both of which lead to a check. */
const STANDING: ReadonlySet<AttentionRule> = new Set([
  'config_warning',
  'secret_missing',
  'paused',
  'budget_spent',
  'budget_near',
  'member_ejected',
]);

interface SentEntry {
  /** Id of the message. The message that reports its end has the same id. */
  readonly id: string;
  /** When it was first found, in epoch milliseconds. */
  readonly at: number;
  readonly entry: Attention;
  /** Time since which it is gone, in epoch milliseconds. null means that it still holds. */
  readonly goneSince: number | null;
}

interface WatchParts {
  readonly env: Env;
  readonly sql: SqlStorage;
  readonly alarm: Alarm;
  readonly target: () => WebhookConfig | null;
  readonly isInUse: () => boolean;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/**
 * Sends attention entries to the webhook: once when they appear, and once when they are resolved.
 *
 * It checks only if a webhook is configured, and then once a minute while pools are in use or entries may end without a
 * call. An idle deployment costs nothing.
 */
export class AttentionWatch {
  readonly #parts: WatchParts;
  #dueAt: number | null = null;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    parts.sql.exec(TABLE);
    if (this.#isWanted() && this.#sent().size > 0) this.#lookAt(Date.now() + EVERY_MS);
  }

  /**
   * Schedules a check because something may have changed: a pool is in use, calls were rejected, or the configuration
   * has a new version.
   */
  note(): void {
    if (this.#isWanted() && this.#dueAt === null) this.#lookAt(Date.now() + SOON_MS);
  }

  /** Checks the list if it is time. */
  async look(): Promise<void> {
    const now = Date.now();
    if (this.#dueAt === null || now < this.#dueAt) return;
    this.#dueAt = null;
    this.#parts.alarm.clear();
    if (!this.#isWanted()) return;
    try {
      const list = await feedOf(this.#parts.env).attention();
      const open = this.#compare(list, now);
      if (open || this.#parts.isInUse()) this.#lookAt(now + EVERY_MS);
    } catch (error) {
      logEvent('attention_unread', { error: String(error) });
      this.#lookAt(now + EVERY_MS);
    }
  }

  /** Sends new and resolved entries. Returns whether an entry may end without a change or a call. */
  #compare(list: readonly Attention[], now: number): boolean {
    const sent = this.#sent();
    const found = new Map(list.map((entry) => [keyOf(entry), entry]));
    for (const [key, entry] of found) {
      const known = sent.get(key);
      if (known === undefined && sent.size < SENT_MAX) {
        const fresh = { id: crypto.randomUUID(), at: now, entry, goneSince: null };
        sent.set(key, fresh);
        this.#write(key, fresh);
        this.#send(fresh, null);
      } else if (known !== undefined && known.goneSince !== null) {
        this.#write(key, { ...known, goneSince: null });
      }
    }
    for (const [key, known] of sent) {
      if (found.has(key)) continue;
      const goneSince = known.goneSince ?? now;
      if (now - goneSince < OVER_AFTER_MS) {
        if (known.goneSince === null) this.#write(key, { ...known, goneSince });
        continue;
      }
      sent.delete(key);
      this.#parts.sql.exec('DELETE FROM attention WHERE key = ?', key);
      this.#send(known, now);
    }
    return [...sent.values()].some(({ entry, goneSince }) => {
      return goneSince !== null || !STANDING.has(entry.rule);
    });
  }

  #send({ id, at, entry }: SentEntry, clearedAt: number | null): void {
    const { env, waitUntil } = this.#parts;
    const message = { id, at: new Date(at).toISOString(), entry };
    const ended = clearedAt === null ? {} : { cleared_at: new Date(clearedAt).toISOString() };
    waitUntil(deliverAttention({ ...message, ...ended }, webhookDependencies(env)));
  }

  #sent(): Map<string, SentEntry> {
    const rows = this.#parts.sql
      .exec<{ key: string; data: string }>('SELECT key, data FROM attention')
      .toArray();
    return new Map(rows.map(({ key, data }) => [key, JSON.parse(data) as SentEntry]));
  }

  #write(key: string, sent: SentEntry): void {
    this.#parts.sql.exec(
      'INSERT OR REPLACE INTO attention (key, data) VALUES (?, ?)',
      key,
      JSON.stringify(sent),
    );
  }

  #isWanted(): boolean {
    const target = this.#parts.target();
    return target !== null && (target.kinds === null || target.kinds.includes('attention'));
  }

  #lookAt(at: number): void {
    this.#dueAt = at;
    this.#parts.alarm.set(at);
  }
}

/** Returns a key that does not depend on the entry's figures. */
function keyOf({ rule, subject, reason, group, says }: Attention): string {
  const of = rule === 'config_warning' ? says : (reason ?? null);
  return JSON.stringify([rule, subject.kind, subject.id, group, of]);
}
