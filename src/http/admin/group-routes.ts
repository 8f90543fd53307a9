import type { Hono } from 'hono';
import { groupSchema, type Config, type GroupConfig } from '../../contract/config.ts';
import type { Env } from '../../contract/env.ts';
import { explainIssues } from '../../contract/import-errors.ts';
import { AUTO_PREFIX } from '../../contract/pool-name.ts';
import { changeConfig, etag, invalid, readDocument, type AdminContext } from './change.ts';
import { mergePatch } from './merge-patch.ts';
import { ProblemError } from './problem.ts';
import { currentSnapshot } from './snapshot.ts';

/** What the routes set that operators reach for in a hurry. */
const SWITCHES = {
  pause: { paused: true },
  drain: { draining: true },
  resume: { paused: false, draining: false },
};

/** Reading and editing configured groups, one at a time. */
export function addGroupRoutes(app: Hono<{ Bindings: Env }>): void {
  app.get('/groups', async (context) => {
    const { version, config } = await currentSnapshot(context.env);
    return context.json({ version, groups: config.groups }, 200, { etag: etag(version) });
  });

  app.get('/groups/:name', async (context) => {
    const { version, config } = await currentSnapshot(context.env);
    return context.json(requireGroup(config, context.req.param('name')), 200, {
      etag: etag(version),
    });
  });

  app.put('/groups/:name', async (context) => {
    const name = context.req.param('name');
    const document = await readDocument(context);
    return changeGroup(context, name, 'put', () => parseGroup(name, document));
  });

  app.patch('/groups/:name', async (context) => {
    const name = context.req.param('name');
    const patch = await readDocument(context);
    return changeGroup(context, name, 'patch', (config) =>
      parseGroup(name, mergePatch(requireGroup(config, name), patch)),
    );
  });

  app.delete('/groups/:name', async (context) => {
    const name = context.req.param('name');
    const { version, warnings } = await changeConfig(context, {
      action: `group ${name}: delete`,
      next: (config) => {
        const gone = requireGroup(config, name);
        return { ...config, groups: config.groups.filter((group) => group !== gone) };
      },
    });
    return context.json({ version, warnings }, 200, { etag: etag(version) });
  });

  for (const [action, edit] of Object.entries(SWITCHES)) {
    app.post(`/groups/:name/${action}`, (context) => {
      const name = context.req.param('name');
      return changeGroup(context, name, action, (config) => ({
        ...requireGroup(config, name),
        ...edit,
      }));
    });
  }
}

/** A configured group, or the problem that there is none. */
function requireGroup(config: Config, name: string): GroupConfig {
  const group = config.groups.find((candidate) => candidate.name === name);
  if (group !== undefined) return group;
  throw new ProblemError(
    404,
    name.startsWith(AUTO_PREFIX)
      ? `"${name}" is an automatic group, which no configuration holds. Configure a group that matches the same calls instead.`
      : `There is no group "${name}".`,
  );
}

async function changeGroup(
  context: AdminContext,
  name: string,
  verb: string,
  edited: (config: Config) => GroupConfig,
): Promise<Response> {
  const { version, before, config, warnings } = await changeConfig(context, {
    action: `group ${name}: ${verb}`,
    next: (present) => ({ ...present, groups: withGroup(present.groups, edited(present)) }),
    pathOf: (path, present) => {
      const index = present.groups.findIndex((group) => group.name === name);
      const prefix = `groups[${index === -1 ? present.groups.length : index}].`;
      return path.startsWith(prefix) ? path.slice(prefix.length) : path;
    },
  });
  const isNew = !before.groups.some((group) => group.name === name);
  const answer = { version, group: requireGroup(config, name), warnings };
  return context.json(answer, isNew ? 201 : 200, { etag: etag(version) });
}

function withGroup(groups: readonly GroupConfig[], group: GroupConfig): GroupConfig[] {
  const index = groups.findIndex((candidate) => candidate.name === group.name);
  return index === -1 ? [...groups, group] : groups.with(index, group);
}

/** Checks one group by itself, so that the paths of its errors are those of the request. */
function parseGroup(name: string, document: unknown): GroupConfig {
  const isObject = typeof document === 'object' && document !== null && !Array.isArray(document);
  const complete = isObject && !('name' in document) ? { name, ...document } : document;
  const parsed = groupSchema.safeParse(complete);
  if (!parsed.success) throw invalid(explainIssues(parsed.error, groupSchema, complete));
  if (parsed.data.name !== name) {
    const message = `must be "${name}", as in the path: a group cannot be renamed`;
    throw invalid([{ path: 'name', message }]);
  }
  return parsed.data;
}
