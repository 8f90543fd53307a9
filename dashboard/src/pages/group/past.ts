/** History of a group, in a separate file, so that the current state loads first. */
export { GroupCharts } from './charts/group-charts.tsx';
export { Decisions } from './decisions/decisions.tsx';
export { GroupWarnings } from './group-warnings.tsx';
