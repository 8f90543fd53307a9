/** Opens the admin routes of the Headgates that these tests start. */
export const ADMIN_TOKEN = 'test-admin-token';

/** Answer of the admin routes about a group, as far as these tests look at it. */
export interface ReadGroupStatus {
  readonly in_use: number;
  readonly queued: number;
  readonly granted_total: number;
  readonly rejected_total: Readonly<Record<string, number>>;
  /** Absent: it names none. */
  readonly members?: readonly {
    readonly id: string;
    readonly out: { readonly reason: string; readonly probe_at: string | null } | null;
  }[];
}

/** Asks a Headgate for the status of a group. */
export async function groupStatus(url: string, name: string): Promise<ReadGroupStatus> {
  const response = await fetch(`${url}/admin/api/groups/${encodeURIComponent(name)}/status`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  if (!response.ok) throw new Error(`status of ${name}: ${await response.text()}`);
  return (await response.json()) as ReadGroupStatus;
}
