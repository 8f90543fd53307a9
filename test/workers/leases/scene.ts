import { expect } from 'vitest';
import {
  leaseAnswerSchema,
  renewalAnswerSchema,
  reportAnswerSchema,
  ticketAnswerSchema,
  type LeaseAnswer,
  type ReleaseRequest,
  type RenewalAnswer,
  type ReportAnswer,
  type ReportRequest,
  type TicketAnswer,
} from '../../../src/contract/caller-api.ts';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { NO_COOLDOWN } from '../support/pool.ts';
import { call, configure } from '../support/worker.ts';

export interface LeasesSceneReport<Body> {
  readonly status: number;
  readonly reason: string | null;
  readonly headers: Headers;
  readonly body: Body;
}

/** The shapes of answers, by method and status. */
const ANSWERS: Readonly<
  Record<
    string,
    | typeof leaseAnswerSchema
    | typeof ticketAnswerSchema
    | typeof renewalAnswerSchema
    | typeof reportAnswerSchema
  >
> = {
  'POST 201': leaseAnswerSchema,
  'POST 202': ticketAnswerSchema,
  'PUT 200': renewalAnswerSchema,
  'PATCH 200': reportAnswerSchema,
};

type LeasesSceneHeadings = Record<string, string>;

async function send<Body>(
  method: string,
  path: string,
  body: unknown,
  headers: LeasesSceneHeadings = {},
): Promise<LeasesSceneReport<Body>> {
  const answer = await call(path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const schema = ANSWERS[`${method} ${answer.status}`];
  const reported = schema?.strict().safeParse(JSON.parse(text));
  expect(reported?.error).toBe(undefined);
  return {
    status: answer.status,
    reason: answer.headers.get('headgate-reason'),
    headers: answer.headers,
    body: (text === '' ? null : JSON.parse(text)) as Body,
  };
}

/** Asks for a lease. */
export function post(
  body: object,
  headers: LeasesSceneHeadings = {},
): Promise<LeasesSceneReport<LeaseAnswer & TicketAnswer & { readonly detail: string }>> {
  return send('POST', '/leases', body, headers);
}

/** Asks, and fails unless it is granted. */
export async function leased(
  body: object,
  headers: LeasesSceneHeadings = {},
): Promise<LeaseAnswer> {
  const answer = await post(body, headers);
  expect(answer).toMatchObject({ status: 201 });
  return answer.body;
}

/** Asks without being parked, and returns the place in the queue. */
export async function queued(
  body: object,
  headers: LeasesSceneHeadings = {},
): Promise<TicketAnswer> {
  const answer = await post(body, { prefer: 'wait=0', ...headers });
  expect(answer).toMatchObject({ status: 202 });
  return answer.body;
}

export function put(
  lease: string,
  headers: LeasesSceneHeadings = {},
): Promise<LeasesSceneReport<RenewalAnswer>> {
  return send('PUT', `/leases/${lease}`, undefined, headers);
}

export function patch(
  lease: string,
  body: ReportRequest,
  headers: LeasesSceneHeadings = {},
): Promise<LeasesSceneReport<ReportAnswer>> {
  return send('PATCH', `/leases/${lease}`, body, headers);
}

export function del(
  lease: string,
  body?: ReleaseRequest,
  headers: LeasesSceneHeadings = {},
): Promise<LeasesSceneReport<null>> {
  return send('DELETE', `/leases/${lease}`, body, headers);
}

export function leave(
  ticket: string,
  headers: LeasesSceneHeadings = {},
): Promise<LeasesSceneReport<null>> {
  return send('DELETE', `/tickets/${ticket}`, undefined, headers);
}

type LeasesSceneGroupInput = NonNullable<ConfigInput['groups']>[number];

/** A group with so many slots, without cool-downs. */
export function group(
  name: string,
  slots: number,
  more: Partial<LeasesSceneGroupInput> = {},
): LeasesSceneGroupInput {
  return {
    name,
    limits: { max_concurrency: slots },
    ...more,
    holds: { ...NO_COOLDOWN, ...more.holds },
  };
}

/** Configures groups for an upstream that is never called, with leases open to every caller, and optional fields. */
export function limitTo(
  groups: readonly LeasesSceneGroupInput[],
  more: ConfigInput = {},
): Promise<void> {
  return configure({
    upstreams: [{ id: 'up', base_url: 'https://up.test' }],
    groups: [...groups],
    leases: 'open',
    ...more,
  });
}
