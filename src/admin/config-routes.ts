import type { Config } from '../contract/config/config.ts';
import { directoryOf } from '../env.ts';
import { closedLeaseWarnings, leaseUsageWarnings } from '../config/check/leases.ts';
import { exportConfig, importConfig } from '../config/import-config.ts';
import { networkWarnings, socketWarnings } from '../config/check/upstreams.ts';
import { keepKnownCaps } from '../config/keep-known-caps.ts';
import { fingerprint, gatewayKeyHash } from '../runtime/digests.ts';
import { changeConfig, type Changed, type Edit } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { etag, invalid, readDocument, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';
import { readVersion } from './version-routes.ts';

/** Serves the configuration as a whole, its audit log, and the fingerprints that it refers to keys by. */
export function addConfigRoutes(app: AdminApp): void {
  serve(app, 'getConfig', async ({ context, query }) => {
    const current = await currentSnapshot(context.env);
    const { version = current.version } = query;
    const config =
      version === current.version
        ? current.config
        : await readVersion(context.env, version, 'version');
    const format = query.format ?? (wantsYaml(context) ? 'yaml' : 'json');
    return new Response(exportConfig(config, format), {
      headers: { etag: etag(version), 'content-type': `application/${format}` },
    });
  });

  serve(app, 'putConfig', async ({ context }) => {
    const { edit, warningsOf } = importEdit(await readDocument(context));
    const changed = await changeConfig(context, edit);
    const { version, config } = changed;
    const groups = config.groups.map((group) => group.name);
    return { status: 200, body: { version, groups, warnings: warningsOf(changed) }, version };
  });

  serve(app, 'fingerprint', async ({ context, body: { key } }) => {
    const { fingerprintKey } = await currentSnapshot(context.env);
    return {
      status: 200,
      body: {
        fingerprint: await fingerprint(fingerprintKey, key),
        hash: await gatewayKeyHash(key),
      },
    };
  });

  serve(app, 'listAudit', async ({ context, query }) => {
    const { limit, cursor, actor, action, since, until } = query;
    const before = cursor === undefined ? undefined : Number(cursor);
    if (before !== undefined && !(Number.isSafeInteger(before) && before > 0)) {
      const message = 'expected the next_cursor of the page before';
      throw invalid([{ path: 'cursor', message }]);
    }
    const { entries, next } = await directoryOf(context.env).auditPage({
      limit,
      ...(before === undefined ? {} : { before }),
      ...(actor === undefined ? {} : { actor }),
      ...(action === undefined ? {} : { action }),
      ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
      ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
    });
    return {
      status: 200,
      body: { entries, next_cursor: next === null ? null : String(next) },
    };
  });
}

/** Makes the edit that puts a document in the configuration's place, and the warnings about it. */
export function importEdit(document: unknown): {
  readonly edit: Edit;
  readonly warningsOf: (changed: Changed) => string[];
} {
  const imported = importConfig(document);
  if (!imported.ok) throw invalid(imported.errors);
  const { groupsOnly } = imported;
  const kept = groupsOnly ? keepKnownCaps(imported.config) : { config: imported.config, notes: [] };
  const { config: wanted } = kept;
  const notes = [...imported.notes, ...kept.notes];
  const isWithAdminKeys = 'admin_keys' in Object(document);
  return {
    edit: {
      action: 'config: import',
      next: (present) => {
        if (groupsOnly) return withGroupsOf(present, wanted);
        return isWithAdminKeys ? wanted : { ...wanted, admin_keys: present.admin_keys };
      },
      pathOf: imported.pathOf ?? ((path) => path),
    },
    warningsOf: ({ before, config, warnings }) => {
      const replaced = groupsOnly ? replacedGroups(before, config) : [];
      const closed = groupsOnly ? [] : closedLeaseWarnings(document, before, config);
      const access = [networkWarnings, socketWarnings, leaseUsageWarnings].flatMap((warningsOf) =>
        warningsOf(config),
      );
      return [...notes, ...replaced, ...closed, ...warnings, ...access];
    },
  };
}

function wantsYaml(context: AdminContext): boolean {
  return /yaml/i.test(context.req.header('accept') ?? '');
}

/** Puts the groups in place of those that there are, and adds the upstreams that they need and nobody has. */
function withGroupsOf(present: Config, { groups, upstreams }: Config): Config {
  const known = new Set(present.upstreams.map(({ id }) => id));
  const added = upstreams.filter(({ id }) => !known.has(id));
  return { ...present, upstreams: [...present.upstreams, ...added], groups };
}

function replacedGroups(before: Config, after: Config): string[] {
  const now = new Set(after.groups.map((group) => group.name));
  const gone = before.groups.map((group) => group.name).filter((name) => !now.has(name));
  const stay =
    'The document has groups only: upstreams that there are, keys and the rest stay as they were.';
  return gone.length === 0 ? [stay] : [stay, `Groups no longer there: ${gone.join(', ')}.`];
}
