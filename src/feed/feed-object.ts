import { DurableObject } from 'cloudflare:workers';
import { bounded } from '../attention/attention.ts';
import type { Attention, Warning } from '../contract/attention.ts';
import type { Env } from '../env.ts';
import type { FeedRpc, FeedWants, PoolReport } from '../contract/rpc/feed-rpc.ts';
import { readAttention } from '../overview/attention.ts';
import { Hub } from './hub.ts';

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
