import type * as z from 'zod';
import type { Frozen, problemSchema } from '../../../src/contract/shared-shapes.ts';
import { ticked, type FieldError } from '../../../src/config/field-error.ts';
import type { AdminClient, AnswerAt } from '../../../src/admin/client.ts';
import type { Config } from '../../../src/contract/config/config.ts';
import type { UpstreamConfig } from '../../../src/contract/config/upstream.ts';
import { importConfig, isForeign, omissionTexts, prunings } from './import-config.ts';
import { keepKnownCaps } from './known-caps.ts';

export type ConfigPreview = AnswerAt<'POST /config/preview'>;

type FrozenUpstream = Frozen<UpstreamConfig>;

/** A configuration without its admin keys, which no import changes. */
type BesideAdminKeys = Omit<Frozen<Config>, 'admin_keys'>;

/** A document to import, as a configuration that the deployment accepts, or the reason why it does not. */
export type ImportPlan =
  | {
      readonly ok: true;
      /** The body of `PUT /config`. */
      readonly body: unknown;
      /** The version that it replaces, for `If-Match`. */
      readonly etag: string | null;
      /** The changes that it makes, with all warnings. */
      readonly preview: ConfigPreview;
      /** Warnings about the conversion, which the response to `PUT /config` does not repeat. */
      readonly notes: readonly string[];
    }
  | {
      readonly ok: false;
      readonly status: number;
      readonly problem: z.output<typeof problemSchema>;
    };

/**
 * Plans the import of a document, in Headgate's format or that of another system. A foreign document replaces only the
 * groups, and adds missing upstreams. The deployment checks each version of it, and rejected parts are left out.
 */
export async function planImport(admin: AdminClient, document: unknown): Promise<ImportPlan> {
  if (!isForeign(document)) return previewed(admin, document);
  const imported = importConfig(document);
  if (!imported.ok) return invalid(imported.errors);
  const read = await admin('GET /config');
  if (!read.ok) return read;
  const { admin_keys: _stay, ...present } = read.body;
  const kept = keepKnownCaps(imported.config);
  const { omitted, pathOf = (path: string) => path } = imported;
  const notes = [...imported.notes, ...kept.notes];
  const steps = prunings({ config: kept.config, notes, omitted, pathOf });
  let step = steps.next();
  let accepted: AcceptedConfig | null = null;
  while (step.done !== true) {
    const body = withGroupsOf(present, step.value);
    const differing = differingUpstreams(present, step.value);
    const plan = differing.length > 0 ? invalid(differing) : await previewed(admin, body);
    if (plan.ok) accepted = { body, preview: plan.preview };
    else if (plan.problem.errors === undefined) return plan;
    step = steps.next(plan.ok ? [] : errorsIn(step.value, body, plan.problem.errors ?? []));
  }
  const settled = step.value;
  if (!settled.ok || accepted === null) return invalid(settled.ok ? [] : settled.errors);
  const { body, preview } = accepted;
  const all = [
    ...settled.notes,
    ...omissionTexts(settled.omitted),
    ...replacedGroups(present, settled.config),
  ];
  const warnings = [...all, ...preview.warnings];
  return { ok: true, body, etag: read.etag, preview: { ...preview, warnings }, notes: all };
}

/** Replaces the configuration as planned. The response contains all warnings. */
export async function applyImport(
  admin: AdminClient,
  { body, etag, notes }: Extract<ImportPlan, { readonly ok: true }>,
) {
  // The cast is sound: the route validates a body of any shape.
  const request = { body: body as never, ...(etag === null ? {} : { ifMatch: etag }) };
  const answer = await admin('PUT /config', request);
  if (!answer.ok) return answer;
  return { ...answer, body: { ...answer.body, warnings: [...notes, ...answer.body.warnings] } };
}

interface AcceptedConfig {
  readonly body: BesideAdminKeys;
  readonly preview: ConfigPreview;
}

async function previewed(admin: AdminClient, body: unknown): Promise<ImportPlan> {
  // The cast is sound: the route validates a body of any shape.
  const answer = await admin('POST /config/preview', { body: body as never });
  if (!answer.ok) return answer;
  return { ok: true, body, etag: answer.etag, preview: answer.body, notes: [] };
}

/** The same problem as that of `PUT /config` for an invalid document. */
function invalid(errors: readonly FieldError[]): Extract<ImportPlan, { readonly ok: false }> {
  const [first] = errors;
  const rest = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  const detail = first === undefined ? '' : `${first.path}: ${first.message}${rest}`;
  return {
    ok: false,
    status: 422,
    problem: {
      type: 'about:blank',
      title: 'Invalid request',
      status: 422,
      detail: detail.replace(/^: /, ''),
      errors: [...errors],
    },
  };
}

/** Translates the paths of errors in the whole configuration to the imported part of it. */
function errorsIn(
  imported: Config,
  { upstreams }: BesideAdminKeys,
  errors: readonly FieldError[],
): FieldError[] {
  return errors.flatMap(({ path, message }) => {
    const [, index] = /^upstreams\[(\d+)\]/.exec(path) ?? [];
    if (index === undefined) return [{ path, message }];
    const at = imported.upstreams.findIndex(({ id }) => id === upstreams[Number(index)]?.id);
    // The import cannot correct upstreams that existed before.
    return at === -1 ? [] : [{ path: path.replace(/\d+/, String(at)), message }];
  });
}

function replacedGroups(before: BesideAdminKeys, after: Config): string[] {
  const now = new Set(after.groups.map((group) => group.name));
  const gone = before.groups.map((group) => group.name).filter((name) => !now.has(name));
  const stay =
    'The document replaces only the groups. Existing upstreams, keys and all other settings stay unchanged.';
  return gone.length === 0 ? [stay] : [stay, `Removed groups: ${ticked(gone)}.`];
}

/**
 * Replaces the groups, and adds missing upstreams. An existing upstream stays, and prices and aliases of the import are
 * added to it.
 */
function withGroupsOf(present: BesideAdminKeys, { groups, upstreams }: Config): BesideAdminKeys {
  const imported = new Map(upstreams.map((upstream) => [upstream.id, upstream]));
  const known = new Set(present.upstreams.map(({ id }) => id));
  return {
    ...present,
    upstreams: [
      ...present.upstreams.map((upstream) => {
        const added = imported.get(upstream.id);
        if (added === undefined) return upstream;
        const prices = { ...upstream.prices, ...added.prices };
        return { ...upstream, prices, aliases: { ...upstream.aliases, ...added.aliases } };
      }),
      ...upstreams.filter(({ id }) => !known.has(id)),
    ],
    groups,
  };
}

/** Returns errors for imported members and groups whose upstream already exists with another destination. */
function differingUpstreams(present: BesideAdminKeys, imported: Config): FieldError[] {
  const there = new Map(present.upstreams.map((upstream) => [upstream.id, upstream]));
  const differing = new Set(
    imported.upstreams.flatMap((upstream) => {
      const known = there.get(upstream.id);
      return known === undefined || leadsThere(upstream, known) ? [] : [upstream.id];
    }),
  );
  const errorAt = (path: string, id: string): FieldError[] =>
    differing.has(id)
      ? [
          {
            path,
            message: `needs the upstream \`${id}\`, but an upstream with this id exists and has another address, dialect or auth. Delete the existing one, or import a document in Headgate's format and rename this one`,
          },
        ]
      : [];
  return imported.groups.flatMap((group, at) => [
    ...group.members.flatMap(({ upstream }, index) =>
      errorAt(`groups[${at}].members[${index}].upstream`, upstream),
    ),
    ...group.match.upstreams.flatMap((id, index) =>
      errorAt(`groups[${at}].match.upstreams[${index}]`, id),
    ),
  ]);
}

/** Returns whether a configured upstream and the imported one send calls to the same address. */
function leadsThere(imported: FrozenUpstream, known: FrozenUpstream): boolean {
  // An import does not contain the address of a built-in upstream.
  if (imported.base_url === undefined) return true;
  const placeOf = ({ base_url: base = '', dialect = 'openai', openai_at: at }: FrozenUpstream) =>
    JSON.stringify([base.replace(/\/+$/, ''), dialect, at ?? null]);
  const isKeylessAlike = (imported.auth === 'none') === (known.auth === 'none');
  return placeOf(imported) === placeOf(known) && isKeylessAlike;
}
