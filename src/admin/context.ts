import type { Context, Hono } from 'hono';
import type { AdminRole } from '../contract/config/keys.ts';
import type { Env } from '../env.ts';

/** Somebody who asks, with what they may do. */
export interface Actor {
  /** `admin-token`, or the id of an admin key. What the audit log calls them. */
  readonly actor: string;
  readonly role: AdminRole;
  readonly via: 'token' | 'session' | 'access';
  /** When a session ends; null: it is none. */
  readonly expiresAt: string | null;
}

interface AdminEnv {
  Bindings: Env;
  Variables: { who: Actor };
}

export type AdminApp = Hono<AdminEnv>;
export type AdminContext = Context<AdminEnv>;
