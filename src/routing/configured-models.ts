import type { Config, GroupConfig, UpstreamConfig } from '../contract/config/config.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { servesModel } from './choose-upstream.ts';
import { namesUpstreams, upstreamsOf } from './group-match.ts';

/** A model name in the configuration, at one upstream that has it. */
export interface ConfiguredModel {
  readonly upstream: Upstream;
  readonly model: string;
}

/**
 * Returns every full model name in the configuration: of upstreams, of groups' matches, and of spill targets. A name
 * without an upstream belongs to the upstreams of its group, or else to those to which `/v1` would send it.
 */
export function configuredModels(
  config: Config,
  upstreams: ReadonlyMap<string, Upstream>,
): ConfiguredModel[] {
  const all = [
    ...config.upstreams.flatMap((entry) => ofUpstream(entry, upstreams)),
    ...config.groups.flatMap((group) => [
      ...ofGroup(group, upstreams),
      ...ofSpill(group.on_saturated, upstreams),
    ]),
    ...config.auto_groups.flatMap(({ on_saturated: does = 'queue' }) => ofSpill(does, upstreams)),
  ];
  // Each once, by the name that a client would use.
  return [...new Map(all.map((one) => [`${one.upstream.id}/${one.model}`, one])).values()];
}

function ofUpstream(
  { id, models = [], aliases, prices }: UpstreamConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): ConfiguredModel[] {
  const upstream = upstreams.get(id);
  if (upstream === undefined) return [];
  const named = [...models, ...Object.keys(aliases), ...Object.keys(prices)];
  return named.filter(isInFull).map((model) => ({ upstream, model }));
}

function ofGroup(group: GroupConfig, upstreams: ReadonlyMap<string, Upstream>): ConfiguredModel[] {
  const own = namesUpstreams(group) ? upstreamsOf(group, upstreams) : null;
  return group.match.models.filter(isInFull).flatMap((name) => {
    const slash = name.indexOf('/');
    const named = upstreams.get(name.slice(0, Math.max(slash, 0)).toLowerCase());
    if (named !== undefined) {
      const isOwn = own === null || own.includes(named);
      return isOwn ? [{ upstream: named, model: name.slice(slash + 1) }] : [];
    }
    const at = own ?? [...upstreams.values()].filter((upstream) => servesModel(upstream, name));
    return at.map((upstream) => ({ upstream, model: name }));
  });
}

function ofSpill(
  onSaturated: GroupConfig['on_saturated'],
  upstreams: ReadonlyMap<string, Upstream>,
): ConfiguredModel[] {
  if (typeof onSaturated === 'string') return [];
  return onSaturated.spill_to.flatMap((stop) => {
    if (typeof stop === 'string' || stop.model === null) return [];
    const upstream = upstreams.get(stop.upstream);
    return upstream === undefined ? [] : [{ upstream, model: stop.model }];
  });
}

function isInFull(model: string): boolean {
  return !model.includes('*');
}
