import helper from './jest.js';

export const { useApnsMock } = helper;
