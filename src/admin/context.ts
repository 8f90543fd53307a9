import type { Context, Hono } from 'hono';
import type { AdminRole } from '../contract/config/keys.ts';
import type { Env } from '../env.ts';

export interface Actor {
  /** Name in the audit log: `admin-token`, the id of an admin key, or `access:…`. */
  readonly actor: string;
  readonly role: AdminRole;
  readonly via: 'token' | 'session' | 'access';
  /** End of the session. null without a session. */
  readonly expiresAt: string | null;
}

interface AdminEnv {
  Bindings: Env;
  Variables: { who: Actor };
}

export type AdminApp = Hono<AdminEnv>;
export type AdminContext = Context<AdminEnv>;
