import type { Hono } from 'hono';
import * as z from 'zod';
import type { Config } from '../../contract/config.ts';
import { directoryOf, type Env } from '../../contract/env.ts';
import { exportConfig, importConfig } from '../../contract/import-config.ts';
import { explainIssues } from '../../contract/import-errors.ts';
import { fingerprint, gatewayKeyHash } from '../fingerprint.ts';
import { changeConfig, etag, invalid, readDocument, type AdminContext } from './change.ts';
import { currentSnapshot } from './snapshot.ts';

const AUDIT_ENTRIES_DEFAULT = 100;
const AUDIT_ENTRIES_MAX = 1_000;

const fingerprintSchema = z.strictObject({ key: z.string().min(1).max(10_000) });

/** The configuration as a whole, its audit log, and the fingerprints that it refers to keys by. */
export function addConfigRoutes(app: Hono<{ Bindings: Env }>): void {
  app.get('/config', async (context) => {
    const { version, config } = await currentSnapshot(context.env);
    const format = wantsYaml(context) ? 'yaml' : 'json';
    return context.body(exportConfig(config, format), 200, {
      etag: etag(version),
      'content-type': `application/${format}`,
    });
  });

  app.put('/config', async (context) => {
    const imported = importConfig(await readDocument(context));
    if (!imported.ok) throw invalid(imported.errors);
    const { config: wanted, groupsOnly, notes } = imported;
    const { version, before, config, warnings } = await changeConfig(context, {
      action: 'config: import',
      next: (present) => (groupsOnly ? { ...present, groups: wanted.groups } : wanted),
      pathOf: (path) => (groupsOnly ? foreignPath(path) : path),
    });
    const kept = groupsOnly ? replacedGroups(before, config) : [];
    const groups = config.groups.map((group) => group.name);
    return context.json({ version, groups, warnings: [...notes, ...kept, ...warnings] }, 200, {
      etag: etag(version),
    });
  });

  app.post('/fingerprint', async (context) => {
    const document = await readDocument(context);
    const parsed = fingerprintSchema.safeParse(document);
    if (!parsed.success) throw invalid(explainIssues(parsed.error, fingerprintSchema, document));
    const { fingerprintKey } = await currentSnapshot(context.env);
    return context.json({
      fingerprint: await fingerprint(fingerprintKey, parsed.data.key),
      hash: await gatewayKeyHash(parsed.data.key),
    });
  });

  app.get('/audit', async (context) => {
    const asked = Number(context.req.query('limit') ?? AUDIT_ENTRIES_DEFAULT);
    if (!Number.isInteger(asked) || asked < 1 || asked > AUDIT_ENTRIES_MAX) {
      const message = `expected a whole number from 1 to ${AUDIT_ENTRIES_MAX}`;
      throw invalid([{ path: 'limit', message }]);
    }
    return context.json({ entries: await directoryOf(context.env).audit(asked) });
  });
}

function wantsYaml(context: AdminContext): boolean {
  const asked = context.req.query('format');
  if (asked !== undefined && asked !== 'json' && asked !== 'yaml') {
    throw invalid([{ path: 'format', message: 'expected json or yaml' }]);
  }
  return (
    asked === 'yaml' || (asked === undefined && /yaml/i.test(context.req.header('accept') ?? ''))
  );
}

/**
 * What of a list of concurrency groups can be refused after it has become a configuration: providers
 * that nobody knows, and a group that exists with another rank.
 */
function foreignPath(path: string): string {
  return path
    .replace(/^groups\[(\d+)\]\.match\.upstreams\[(\d+)\]$/, 'concurrency_groups[$1].providers[$2]')
    .replace(/^groups\[(\d+)\]\.match$/, 'concurrency_groups[$1]');
}

function replacedGroups(before: Config, after: Config): string[] {
  const now = new Set(after.groups.map((group) => group.name));
  const gone = before.groups.map((group) => group.name).filter((name) => !now.has(name));
  const stay = 'The document has groups only: upstreams, keys and the rest stay as they were.';
  return gone.length === 0 ? [stay] : [stay, `Groups no longer there: ${gone.join(', ')}.`];
}
