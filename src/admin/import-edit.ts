import { closedLeaseWarnings, leaseUsageWarnings } from '../config/check/leases.ts';
import { networkWarnings, socketWarnings } from '../config/check/upstreams.ts';
import { checkConfig } from '../config/check-config.ts';
import { ticked, type FieldError } from '../config/field-error.ts';
import {
  importConfig,
  importPruned,
  omissionTexts,
  type Imported,
} from '../config/import-config.ts';
import { keepKnownCaps } from '../config/keep-published-caps.ts';
import type { Config } from '../contract/config/config.ts';
import type { Env } from '../env.ts';
import { BUILT_IN_UPSTREAMS } from '../providers/catalog.ts';
import { checkOptionsOf, type ChangeResult, type Edit } from './change.ts';
import { differingUpstreams, withGroupsOf } from './imported-groups.ts';
import { invalid } from './serve.ts';

interface ImportEdit {
  readonly edit: Edit;
  readonly warningsOf: (changed: ChangeResult) => string[];
}

/** Creates the edit that imports a document, and the function that returns its warnings. */
export function importEdit(env: Env, document: unknown): ImportEdit {
  const imported = importConfig(document);
  if (!imported.ok) throw invalid(imported.errors);
  return imported.groupsOnly ? groupsEdit(env, imported) : wholeEdit(document, imported);
}

/** Replaces the whole configuration by a document in Headgate's format. It may omit the admin keys to keep them. */
function wholeEdit(
  document: unknown,
  { config: wanted, notes }: Extract<Imported, { readonly ok: true }>,
): ImportEdit {
  const isWithAdminKeys = 'admin_keys' in Object(document);
  return {
    edit: {
      action: 'config: import',
      next: (present) => (isWithAdminKeys ? wanted : { ...wanted, admin_keys: present.admin_keys }),
    },
    warningsOf: ({ before, config, warnings }) => [
      ...notes,
      ...closedLeaseWarnings(document, before, config),
      ...warnings,
      ...accessWarnings(config),
    ],
  };
}

/** Replaces the groups by those of a foreign document, and adds missing upstreams. */
function groupsEdit(env: Env, imported: Extract<Imported, { readonly ok: true }>): ImportEdit {
  const kept = keepKnownCaps(imported.config);
  const notes = [...imported.notes, ...kept.notes];
  const { omitted, pathOf = (path: string) => path } = imported;
  const foreign = { config: kept.config, notes, omitted, pathOf };
  let latest = imported;
  return {
    edit: {
      action: 'config: import',
      next: (present) => {
        const settled = importPruned(foreign, (each) => errorsBeside(present, each, env));
        if (!settled.ok) throw invalid(settled.errors);
        latest = settled;
        return withGroupsOf(present, settled.config);
      },
      pathOf: (path) => latest.pathOf?.(path) ?? path,
    },
    warningsOf: ({ before, config, warnings }) => [
      ...notes,
      ...omissionTexts(latest.omitted),
      ...replacedGroups(before, config),
      ...warnings,
      ...accessWarnings(config),
    ],
  };
}

function accessWarnings(config: Config): string[] {
  const all = [networkWarnings, socketWarnings, leaseUsageWarnings];
  return all.flatMap((warningsOf) => warningsOf(config));
}

/**
 * Returns the errors of imported groups and upstreams within the existing configuration, with their paths in the
 * import.
 */
function errorsBeside(present: Config, imported: Config, env: Env): FieldError[] {
  const differing = differingUpstreams(present, imported);
  if (differing.length > 0) return differing;
  const config = withGroupsOf(present, imported);
  const { errors } = checkConfig(config, BUILT_IN_UPSTREAMS, checkOptionsOf(env));
  return errors.flatMap(({ path, message }) => {
    const [, index] = /^upstreams\[(\d+)\]/.exec(path) ?? [];
    if (index === undefined) return [{ path, message }];
    const id = config.upstreams[Number(index)]?.id;
    const at = imported.upstreams.findIndex((each) => each.id === id);
    // Existing upstreams are validated with the whole configuration.
    return at === -1 ? [] : [{ path: path.replace(/\d+/, String(at)), message }];
  });
}

function replacedGroups(before: Config, after: Config): string[] {
  const now = new Set(after.groups.map((group) => group.name));
  const gone = before.groups.map((group) => group.name).filter((name) => !now.has(name));
  const stay =
    'The document replaces only the groups. Existing upstreams, keys and all other settings stay unchanged.';
  return gone.length === 0 ? [stay] : [stay, `Removed groups: ${ticked(gone)}.`];
}
