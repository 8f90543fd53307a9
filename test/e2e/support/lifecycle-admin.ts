import { until } from './lifecycle-wait.ts';

/** Status of a group, as far as these tests look at it. */
interface GroupGauges {
  readonly name: string;
  readonly limit: { readonly effective: number | null; readonly source: string };
  readonly in_use: number;
  readonly cooling: number;
  readonly lent: number;
  readonly queued: number;
  readonly granted_total: number;
  readonly expired_total: number;
  readonly resurrected_total: number;
  readonly rejected_total: Readonly<Record<string, number>>;
  readonly partitions: readonly {
    readonly partition: string | null;
    readonly limit?: { readonly effective: number | null };
    readonly in_use?: number;
    readonly queued?: number;
  }[];
}

interface LeaseLine {
  readonly id: string;
  readonly age_ms: number;
  readonly expires_at: string;
  readonly state: string;
}

/** The admin routes of a Headgate. */
export interface Admin {
  /** Sends a request and answers with the response, whatever its status is. */
  request(method: string, path: string, body?: unknown): Promise<Response>;
  groups(): Promise<readonly GroupGauges[]>;
  group(name: string): Promise<GroupGauges>;
  leases(name: string): Promise<readonly LeaseLine[]>;
  setLimit(name: string, maxConcurrency: number): Promise<void>;
  /** Waits until a group holds and queues exactly so many calls. */
  untilGroup(
    name: string,
    gauges: { readonly in_use?: number; readonly queued?: number; readonly lent?: number },
  ): Promise<void>;
  /** Waits until no group holds, cools or queues anything. */
  untilIdle(): Promise<void>;
}

async function read<T>(response: Response): Promise<T> {
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}

/** Speaks to the admin routes at `urlOf()`, which may change with a restart. */
export function createAdmin(urlOf: () => string, token: string): Admin {
  const request: Admin['request'] = (method, path, body) =>
    fetch(`${urlOf()}/admin/api${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const groupPath = (name: string): string => `/groups/${encodeURIComponent(name)}`;
  const groups: Admin['groups'] = async () =>
    (await read<{ groups: GroupGauges[] }>(await request('GET', '/status'))).groups;
  const group: Admin['group'] = async (name) =>
    read(await request('GET', `${groupPath(name)}/status`));
  return {
    request,
    groups,
    group,
    async leases(name) {
      const response = await request('GET', `${groupPath(name)}/leases`);
      return (await read<{ leases: LeaseLine[] }>(response)).leases;
    },
    async setLimit(name, maxConcurrency) {
      const patch = { limits: { max_concurrency: maxConcurrency } };
      await read(await request('PATCH', groupPath(name), patch));
    },
    async untilGroup(name, gauges) {
      const isSo = async (): Promise<boolean> => {
        const { in_use, queued, lent: prefetched } = await group(name);
        const told = { in_use, queued, lent: prefetched };
        return Object.entries({ ...told, ...gauges }).every(
          ([gauge, value]) => told[gauge as keyof typeof told] === value,
        );
      };
      await until(`${name} has ${JSON.stringify(gauges)}`, isSo);
    },
    async untilIdle() {
      const isIdle = async (): Promise<boolean> =>
        (await groups()).every(({ in_use, cooling, queued }) => in_use + cooling + queued === 0);
      await until('every group is idle', isIdle, { everyMs: 20 });
    },
  };
}
