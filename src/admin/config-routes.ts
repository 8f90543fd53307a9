import { prefersType } from '../runtime/header-value.ts';
import { directoryOf } from '../env.ts';
import { exportConfig } from '../config/own-config.ts';
import { fingerprint, gatewayKeyHash } from '../runtime/digests.ts';
import { changeConfig } from './change.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { importEdit } from './import-edit.ts';
import { etag, invalid, readDocument, serve } from './serve.ts';
import { currentSnapshot } from './snapshot.ts';
import { readVersion } from './version-routes.ts';

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
      const message = 'expected the `next_cursor` of the previous page';
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

function wantsYaml(context: AdminContext): boolean {
  const isYaml = (type: string): boolean => type.includes('yaml');
  return prefersType(context.req.header('accept'), isYaml, 'application/json');
}
