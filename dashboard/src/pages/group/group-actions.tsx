import { useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { version } from '../../feed.ts';
import type { GroupView } from '../../model/status.ts';
import { may } from '../../session.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { actsOf, consequenceOf, type GroupAct } from '../../model/consequence.ts';
import { SetLimits } from './set-limits.tsx';
import { PauseUntil } from './pause-until.tsx';
import { lastChangeOf } from './last-change.ts';

export function GroupActions({ group }: { readonly group: GroupView }) {
  const [isBusy, setBusy] = useState(false);
  const { name } = group;
  const act = async (what: GroupAct): Promise<void> => {
    const { title, says, verb, done, isGrave } = consequenceOf(what, group);
    if (isGrave && !(await confirm({ title, says, verb }))) return;
    setBusy(true);
    const problem = await run(what, name);
    setBusy(false);
    if (problem === null) say(done);
    else complain(problem.status === 412 ? await lastChangeOf(name) : `${title} ${problem.detail}`);
  };
  const button = (what: GroupAct) => {
    const role = what === 'dry_run_on' || what === 'dry_run_off' ? 'admin' : 'operator';
    return (
      <button
        key={what}
        type="button"
        disabled={isBusy || !may(role)}
        title={may(role) ? undefined : `Requires the ${role} role`}
        onClick={() => void act(what)}
      >
        {LABELS[what]}
      </button>
    );
  };
  const acts = actsOf(group);
  const isConfigured = group.kind === 'configured';
  if (acts.length === 0) return null;
  return (
    <div class="actions" role="group" aria-label="Actions">
      {acts.map((what) => button(what))}
      {(group.paused || acts.includes('pause')) && may('operator') && <PauseUntil name={name} />}
      {group.kind === 'automatic' && may('admin') && <SetLimits name={name} />}
      {isConfigured && may('admin') && (
        <a class="button" href={`/admin/groups/${encodeURIComponent(name)}/edit`}>
          Edit
        </a>
      )}
      {!may('operator') && <small>Read-only. Pausing requires the operator role.</small>}
      {isConfigured && may('operator') && !may('admin') && (
        <small>Editing requires the admin role.</small>
      )}
    </div>
  );
}

const LABELS: Readonly<Record<GroupAct, string>> = {
  pause: 'Pause',
  drain: 'Drain',
  resume: 'Resume',
  relearn: 'Reset learned state',
  dry_run_on: 'Start dry run',
  dry_run_off: 'End dry run',
};

async function run(what: GroupAct, name: string): Promise<Problem | null> {
  const params = { name };
  const result = await (() => {
    switch (what) {
      case 'pause':
        return api('POST /groups/{name}/pause', { params });
      case 'drain':
        return api('POST /groups/{name}/drain', { params });
      case 'resume':
        return api('POST /groups/{name}/resume', { params });
      case 'relearn':
        return api('POST /groups/{name}/relearn', { params });
      case 'dry_run_on':
      case 'dry_run_off':
        return api('PATCH /groups/{name}', {
          params,
          body: { dry_run: what === 'dry_run_on' },
          ...(version.value === null ? {} : { ifMatch: `"${version.value}"` }),
        });
    }
  })();
  return result.ok ? null : result.problem;
}
