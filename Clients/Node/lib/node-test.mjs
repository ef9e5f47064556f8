import helper from './node-test.js';

export const { useApnsMock } = helper;
